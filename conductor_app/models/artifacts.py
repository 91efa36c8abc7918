"""Artifacts that workers store for their attempts at standalone tasks."""

from collections.abc import Sequence
from typing import Self

from django.db import models

from .fields import DocumentField, IdField, MomentField


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
