"""Results of tasks and of runs that are used again, by what they were asked for."""

from django.db import models

from .fields import IdField, MomentField


class CachedResult(models.Model):
    """Where the result of one name and key is found: an attempt or a run. It is gone with the run it comes from."""

    name = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    attempt_id = IdField()
    run_id = IdField(default="", db_default="", blank=True)
    expires_at = MomentField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_result_per_key", fields=["digest", "name"])]

    def __str__(self) -> str:
        return f"{self.name} {self.digest}"
