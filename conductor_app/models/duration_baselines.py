"""Typical durations, which timelines and lists compare with actual ones."""

from django.db import models

from .fields import MomentField


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
        constraints = [
            models.UniqueConstraint(name="one_usual_duration_per_step", fields=["name", "version", "ref"]),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version} {self.ref}".rstrip()
