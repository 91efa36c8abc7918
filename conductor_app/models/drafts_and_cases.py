"""Drafts of definitions, and test cases of workflows."""

from django.db import models

from .fields import DocumentField, MomentField


class DefinitionDraft(models.Model):
    """An unsaved text of a definition, valid JSON or not. `base`: the revision of the definition that it changes."""

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
    """The requirement that all test cases of a workflow pass before it is saved."""

    workflow = models.CharField(max_length=255, unique=True)
    holds = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.workflow}: {'held back' if self.holds else 'warned of'}"


class SimulationCase(models.Model):
    """A test case of a workflow: its input, the mock results of its tasks, and the expected result."""

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
