"""Results of tasks that are used again, by what they were asked for."""

from django.db import models

from .fields import IdField, MomentField


class CachedResult(models.Model):
    """Where the result of the tasks of one name and key is found. It is gone with the run that it comes from."""

    name = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    attempt_id = IdField()
    expires_at = MomentField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_result_per_key", fields=["digest", "name"])]

    def __str__(self) -> str:
        return f"{self.name} {self.digest}"
