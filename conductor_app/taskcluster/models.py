"""Tables of standalone tasks, their groups, dependencies and artifacts, and of Taskcluster's clients and roles."""

from collections.abc import Sequence
from typing import Self

from django.db import models
from django.db.models import Q

from ..core.snapshot import NEVER
from ..db.fields import Authored, DocumentField, IdField, MomentField
from ..runs.models import Attempt, Task


class TaskGroup(models.Model):
    """A task group. A sealed group accepts no more tasks."""

    id = IdField(primary_key=True)
    scheduler_id = models.CharField(max_length=38)
    created_at = MomentField(default=0, db_default=0)
    expires_at = MomentField()
    sealed_at = MomentField(null=True)

    class Meta:
        verbose_name = "task group"
        indexes = [
            models.Index(name="group_by_expiry", fields=["expires_at"]),
            models.Index(name="group_by_age", fields=["-created_at", "id"]),
        ]

    def __str__(self) -> str:
        return self.id


class StandaloneTaskQuerySet(models.QuerySet):
    """Queries for standalone tasks."""

    def defer_payloads(self) -> Self:
        """Omit the definition, which may be large."""
        return self.defer("definition")

    def with_attempts(self) -> Self:
        """Prefetch the tasks and all their attempts."""
        attempts = models.Prefetch("task__attempts", Attempt.objects.defer_payloads().order_by("number"))
        return self.select_related("task").prefetch_related(attempts)

    def starting_after(self, place: Sequence[str]) -> Self:
        """Return the tasks after this position, ordered by id."""
        return (self.filter(pk__gt=place[0]) if place else self).order_by("pk")

    def waiting_for(self, task_id: str) -> Self:
        """Return the tasks that depend on this task."""
        edges = Dependency.objects.filter(required_id=task_id, task_id=models.OuterRef("pk"))
        return self.filter(models.Exists(edges))


class StandaloneTask(models.Model):
    """A standalone task: additional columns of its `Task`. `definition`: the document that its client sent."""

    task = models.OneToOneField(Task, on_delete=models.CASCADE, primary_key=True, related_name="standalone")
    group_id = IdField()
    scheduler_id = models.CharField(max_length=38)
    project_id = models.CharField(max_length=500)
    queue = models.CharField(max_length=640)
    priority = models.SmallIntegerField()
    retries = models.SmallIntegerField()
    retries_left = models.SmallIntegerField()
    deadline_at = MomentField()
    expires_at = MomentField()
    wake_at = MomentField()
    grace_ms = models.BigIntegerField()
    lease_ms = models.BigIntegerField()
    accepts_failure = models.BooleanField(default=False)
    ever_resolved = models.BooleanField(default=False)
    revision = models.IntegerField(default=0)
    tags = DocumentField(default=dict)
    routes = DocumentField(default=list)
    definition = DocumentField(default=dict)

    objects = StandaloneTaskQuerySet.as_manager()

    class Meta:
        verbose_name = "standalone task"
        indexes = [
            models.Index(name="standalone_by_group", fields=["group_id", "task"]),
            models.Index(name="standalone_to_wake", fields=["wake_at"], condition=Q(wake_at__lt=NEVER)),
            models.Index(name="standalone_unresolved", fields=["group_id"], condition=Q(ever_resolved=False)),
            models.Index(name="standalone_by_expiry", fields=["expires_at"]),
        ]

    def __str__(self) -> str:
        return self.pk

    @property
    def id(self) -> str:
        return self.pk

    @property
    def attempts(self) -> list[Attempt]:
        """Return the prefetched attempts in order."""
        return list(self.task.attempts.all())


class Dependency(models.Model):
    """A dependency of a standalone task on another. The row is deleted with the dependent task."""

    task_id = IdField()
    required_id = IdField()
    is_satisfied = models.BooleanField(default=False)
    expires_at = MomentField()

    class Meta:
        verbose_name_plural = "dependencies"
        constraints = [
            # The order of columns also serves the paged list of dependent tasks, which is ordered by id.
            models.UniqueConstraint(name="one_dependency_per_pair", fields=["required_id", "task_id"]),
        ]
        indexes = [
            models.Index(name="dependency_of_task", fields=["task_id"]),
            models.Index(name="dependency_unsatisfied", fields=["task_id"], condition=Q(is_satisfied=False)),
            models.Index(
                name="dependency_to_satisfy", fields=["required_id", "task_id"], condition=Q(is_satisfied=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} after {self.required_id}"


class ArtifactQuerySet(models.QuerySet):
    """Queries for artifacts."""

    def of(self, task_id: str, number: int) -> Self:
        """Return the artifacts of one attempt."""
        return self.filter(task_id=task_id, number=number)

    def starting_after(self, place: Sequence[str]) -> Self:
        """Return the artifacts after this position, ordered by name."""
        return (self.filter(name__gt=place[0]) if place else self).order_by("name")


class Artifact(models.Model):
    """An artifact of an attempt. `path`: the path of its content after the upload; `details`: see the core."""

    task_id = IdField()
    number = models.IntegerField()
    name = models.CharField(max_length=1024)
    kind = models.CharField(max_length=16)
    content_type = models.CharField(max_length=255)
    content_encoding = models.CharField(max_length=64, default="", blank=True)
    content_length = models.BigIntegerField(null=True)
    details = DocumentField(default=dict)
    is_present = models.BooleanField(default=True)
    path = models.CharField(max_length=255, default="", blank=True)
    size = models.BigIntegerField(default=0)
    created_at = MomentField()
    expires_at = MomentField()

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="one_artifact_per_name", fields=["task_id", "number", "name"]),
        ]
        indexes = [models.Index(name="artifact_by_expiry", fields=["expires_at"])]

    def __str__(self) -> str:
        return f"{self.task_id}/{self.number}/{self.name}"


class ScopeRole(Authored):
    """A name for a set of scopes, which `assume:<id>` stands for. An id that ends in `*` matches many roles."""

    id = models.CharField("role id", max_length=512, primary_key=True)
    scopes = DocumentField(default=list)
    description = models.TextField(default="", blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.id
