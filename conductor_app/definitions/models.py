"""Tables of definitions, schemas, drafts, test cases, durations, sources and workflow tests."""

from typing import Any, ClassVar

from django.db import models

from ..db.fields import Authored, DocumentField, IdField, MomentField


class WorkflowDefinition(Authored):
    """The current document of a name and version. Runs keep their resolved definition when it is overwritten."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "name"}

    # Set by the list of definitions, which loads more than the row.
    catalog_entry: Any
    history_strip: Any

    name = models.CharField(max_length=255)
    version = models.IntegerField(default=1)
    document = DocumentField(default=dict)
    description = models.TextField(default="", blank=True)
    failure_workflow = models.CharField(max_length=255, default="", blank=True)
    rate_limit_key = models.CharField(max_length=512, default="", blank=True)
    concurrent_limit = models.IntegerField(default=0)
    owner_email = models.CharField(max_length=255, default="", blank=True)
    revision = models.IntegerField(default=1)
    archived_at = MomentField(null=True)
    # For the runs that start with it (core/breakpoints.py).
    breakpoints = DocumentField(null=True, blank=True)

    class Meta:
        ordering = ["name", "-version"]
        permissions = [("execute_workflowdefinition", "Can start workflows")]
        constraints = [models.UniqueConstraint(name="one_definition_per_name_and_version", fields=["name", "version"])]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"


class TaskDefinition(Authored):
    """A task definition as its author wrote it. Its limits are also columns, because every claim reads them."""

    access_names: ClassVar[dict[str, str]] = {"TASK_DEF": "name"}

    # Set by the list of definitions, which loads more than the row.
    catalog_entry: Any

    name = models.CharField(max_length=255, unique=True)
    document = DocumentField(default=dict)
    description = models.TextField(default="", blank=True)
    concurrent_limit = models.IntegerField(default=0)
    rate_count = models.IntegerField(default=0)
    rate_seconds = models.IntegerField(default=1)
    owner_email = models.CharField(max_length=255, default="", blank=True)
    revision = models.IntegerField(default=1)
    archived_at = MomentField(null=True)

    class Meta:
        ordering = ["name"]
        permissions = [("execute_taskdefinition", "Can poll and report tasks")]

    def __str__(self) -> str:
        return self.name


class ResolvedDefinition(models.Model):
    """The exact document that runs follow, with task definitions and schemas filled in. It never changes."""

    hash = models.CharField(max_length=64, primary_key=True)
    name = models.CharField(max_length=255)
    version = models.IntegerField()
    document = DocumentField()
    created_at = MomentField()

    def __str__(self) -> str:
        return f"{self.name} version {self.version} ({self.hash[:8]})"


class DefinitionRevision(models.Model):
    """One row with a revision that every change of a definition increases, for caches of parsed definitions."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    revision = models.BigIntegerField(default=0)


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


class DurationBaseline(models.Model):
    """Median and 95th percentile of the duration of a step (`ref`) or run (empty `ref`) of a definition version."""

    name = models.CharField(max_length=255)
    version = models.IntegerField()
    ref = models.CharField(max_length=512, default="", blank=True)
    count = models.IntegerField()
    p50_ms = models.BigIntegerField()
    p95_ms = models.BigIntegerField()
    measured_at = MomentField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_usual_duration_per_step", fields=["name", "version", "ref"])]

    def __str__(self) -> str:
        return f"{self.name} v{self.version} {self.ref}".rstrip()


class SchemaDefinition(Authored):
    """A schema that definitions refer to. Resolved definitions contain a copy."""

    access_names: ClassVar[dict[str, str]] = {"SCHEMA": "name"}

    name = models.CharField(max_length=255)
    version = models.IntegerField(default=1)
    document = DocumentField(default=dict)

    class Meta:
        ordering = ["name", "-version"]
        # Permissions use the name `schema`, which roles contain (see `Grant`).
        default_permissions = ()
        constraints = [models.UniqueConstraint(name="one_schema_per_name_and_version", fields=["name", "version"])]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"


MAX_LABEL_LENGTH, MAX_COMMIT_LENGTH = 120, 64
NEWEST = 0
"""The stated version of a document without one: it follows the newest version."""


class AppliedDefinition(models.Model):
    """A definition as a source applied it last. It belongs to that source.

    `label`: the name of the source. `stated_version`: that of its document, or NEWEST. `version`: the one that was
    saved, 0 if the kind has none. `versions`: all versions that the source has saved. `document`: as it was saved.
    """

    label = models.CharField(max_length=MAX_LABEL_LENGTH)
    kind = models.CharField(max_length=32)
    name = models.CharField(max_length=255)
    stated_version = models.IntegerField(default=NEWEST)
    version = models.IntegerField(default=0)
    versions = DocumentField(default=list)
    document = DocumentField(default=dict)
    commit = models.CharField(max_length=MAX_COMMIT_LENGTH, default="", blank=True)
    applied_at = MomentField()
    applied_by = models.CharField(max_length=255)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="one_source_per_definition_and_version", fields=["kind", "name", "stated_version"]
            )
        ]
        indexes = [models.Index(name="applied_definition_of_label", fields=["label", "kind", "name"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.label}"


class WorkflowTest(models.Model):
    """One simulated execution, of the tested workflow or a sub-workflow in it. Workers and sweeps ignore it."""

    id = IdField(primary_key=True)
    name = models.CharField(max_length=255)
    document = DocumentField()
    created_at = MomentField(db_index=True)
    created_by = models.CharField(max_length=255, default="", blank=True)

    def __str__(self) -> str:
        return f"test {self.id} of {self.name}"
