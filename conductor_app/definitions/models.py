"""Definitions as their authors wrote them, and the resolved definitions that runs follow."""

from typing import Any

from django.db import models

from .fields import Authored, DocumentField, MomentField


class WorkflowDefinition(Authored):
    """The current document of a name and version. Runs keep their resolved definition when it is overwritten."""

    # Set by queries and commands that load more than the row.
    catalog_entry: Any

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

    # Set by queries and commands that load more than the row.
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
