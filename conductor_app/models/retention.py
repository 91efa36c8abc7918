"""Retention of ended runs, and the daily size of the database."""

from django.db import models

from .fields import MomentField


class RetentionPolicy(models.Model):
    """A policy for the runs of one definition, or for all without a policy of their own (empty name).

    `days`: how long an ended run is kept, 0 for ever. `failed_days`: the same for failed runs. `keep_last`: the number
    of newest runs that are always kept.
    """

    definition = models.CharField(max_length=255, unique=True, blank=True)
    days = models.IntegerField()
    failed_days = models.IntegerField()
    keep_last = models.IntegerField(default=0)
    changed_at = MomentField()
    by = models.CharField(max_length=255)

    class Meta:
        verbose_name_plural = "retention policies"

    def __str__(self) -> str:
        return self.definition or "all others"


class DailyStorage(models.Model):
    """A day: the size of the database at the last measurement, and the number of runs that retention has removed."""

    day_at = MomentField(primary_key=True)
    bytes = models.BigIntegerField(default=0)
    removed = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.bytes} bytes"
