"""What authors keep while they write: drafts of definitions, cases to try them with."""

from django.db import models

from .fields import DocumentField, MomentField


class DefinitionDraft(models.Model):
    """What somebody has typed and not saved, JSON or not. `base`: the state of the definition that it began with."""

    kind = models.CharField(max_length=16)
    name = models.CharField(max_length=255, default="", blank=True)
    author = models.CharField(max_length=255)
    base = models.CharField(max_length=64, default="", blank=True)
    text = models.TextField()
    updated_at = MomentField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="one_draft_per_definition_and_author", fields=["author", "kind", "name"])
        ]

    def __str__(self) -> str:
        return f"{self.author}'s draft of {self.name or f'a new {self.kind}'}"


class SaveRequirement(models.Model):
    """Whether a workflow is held back from being saved while one of its cases ends in another way."""

    workflow = models.CharField(max_length=255, unique=True)
    holds = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.workflow}: {'held back' if self.holds else 'warned of'}"


class SimulationCase(models.Model):
    """A workflow's input with what its tasks come to, and how it ended when it was kept."""

    workflow = models.CharField(max_length=255)
    name = models.CharField(max_length=120)
    input = DocumentField(default=dict)
    outcomes = DocumentField(default=dict)
    expected = DocumentField(default=dict)
    created_at = MomentField()
    created_by = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_case_per_workflow_and_name", fields=["workflow", "name"])]

    def __str__(self) -> str:
        return f"{self.workflow}: {self.name}"
