"""Failures, and the groups of failures with the same cause."""

from typing import ClassVar, Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext as _

from ..core.failure_grouping import informative_line, stable_title
from ..core.states import FAILURE, UNHANDLED
from ..db.fields import DocumentField, IdField, MomentField


class FailureGroupQuerySet(models.QuerySet):
    """Queries for failure groups."""

    def not_merged(self) -> Self:
        """Return the groups that are not merged into another."""
        return self.filter(merged_into__isnull=True)


class FailureGroup(models.Model):
    """Failures with the same cause, and the state of their resolution. `issue_url`: the issue that tracks the cause."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "definition"}

    fingerprint = models.CharField(max_length=40, unique=True)
    definition = models.CharField(max_length=255)
    ref = models.CharField(max_length=512, default="", blank=True)
    message = models.TextField(default="", blank=True)
    sample = models.TextField(default="", blank=True)
    sample_run_id = IdField(default="", blank=True)
    sample_attempt_id = IdField(default="", blank=True)
    first_at = MomentField()
    last_at = MomentField()
    count = models.BigIntegerField(default=0)
    state = models.CharField(max_length=16, default=UNHANDLED)
    assignee = models.CharField(max_length=255, default="", blank=True)
    note = models.TextField(default="", blank=True)
    issue_url = models.CharField(max_length=500, default="", db_default="", blank=True)
    resolved_version = models.IntegerField(null=True)
    resolved_build = models.CharField(max_length=255, default="", blank=True)
    earlier_builds = DocumentField(default=list)
    merged_into = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="parts")

    objects = FailureGroupQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="failure_state_is_known", condition=Q(state__in=sorted(FAILURE.statuses)))
        ]
        indexes = [
            models.Index(name="failure_group_by_state", fields=["state", "-last_at"]),
            models.Index(name="failure_group_by_time", fields=["-last_at"]),
            models.Index(name="failure_group_of_name", fields=["definition", "-last_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.definition} · {stable_title(self.ref) or 'the run itself'}: {self.title[:80]}"

    @property
    def place(self) -> str:
        """Return the workflow and the task whose failures the group has."""
        return f"{self.definition} › {stable_title(self.ref) or _('(workflow)')}"

    @property
    def title(self) -> str:
        """Return the message that all failures of the group share, with an ellipsis for each part that varies."""
        return informative_line(stable_title(self.message))

    @property
    def example(self) -> str:
        """Return the newest message if parts of it vary within the group."""
        return informative_line(self.sample) if "…" in self.title else ""


class Failure(models.Model):
    """A failed attempt, or a run that failed without a failed task, written in the transaction of the failure.

    A sweep assigns its group later. For a standalone task, `definition` is the queue.
    """

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "definition"}

    group = models.ForeignKey(FailureGroup, on_delete=models.CASCADE, null=True, db_index=False)
    fingerprint = models.CharField(max_length=40)
    run_id = IdField()
    task_id = IdField(default="", db_default="", blank=True)
    attempt_id = IdField(default="", blank=True)
    definition = models.CharField(max_length=255)
    version = models.IntegerField()
    ref = models.CharField(max_length=512, default="", blank=True)
    message = models.TextField(default="", blank=True)
    queue = models.CharField(max_length=640, default="", blank=True)
    worker = models.CharField(max_length=255, default="", blank=True)
    build = models.CharField(max_length=255, default="", blank=True)
    at = MomentField()

    class Meta:
        indexes = [
            models.Index(name="failure_to_count", fields=["id", "at"], condition=Q(group__isnull=True)),
            models.Index(name="failure_of_group", fields=["group", "-at", "run_id"], condition=Q(group__isnull=False)),
            models.Index(name="failure_of_run", fields=["run_id"]),
            models.Index(name="failure_of_task", fields=["task_id"], condition=~Q(task_id="")),
            models.Index(name="failure_by_time", fields=["at"]),
        ]

    def __str__(self) -> str:
        return f"{self.definition} {self.ref}: {self.message[:80]}"


class HourlyFailureCount(models.Model):
    """The number of failures of a group in one hour, by definition version and worker build."""

    access_names: ClassVar[dict[str, str]] = {"WORKFLOW_DEF": "group__definition"}

    group = models.ForeignKey(FailureGroup, on_delete=models.CASCADE, db_index=False)
    hour_at = MomentField()
    version = models.IntegerField()
    build = models.CharField(max_length=255, default="", blank=True)
    count = models.IntegerField(default=0)

    class Meta:
        verbose_name_plural = "hourly failure counts"
        constraints = [
            models.UniqueConstraint(name="one_tally_per_hour", fields=["group", "hour_at", "version", "build"])
        ]
