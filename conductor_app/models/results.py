"""Cached results of tasks and runs, by their cache keys."""

from django.db import models

from .fields import IdField, MomentField


class CachedResult(models.Model):
    """The attempt or the run whose result is cached under a name and a key. The row is deleted with the run."""

    name = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    attempt_id = IdField()
    run_id = IdField(default="", db_default="", blank=True)
    expires_at = MomentField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_result_per_key", fields=["digest", "name"])]

    def __str__(self) -> str:
        return f"{self.name} {self.digest}"
