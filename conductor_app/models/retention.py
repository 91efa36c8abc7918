"""Retention of ended runs, and the daily size of the database."""

from django.db import models

from .fields import MomentField


class RetentionPolicy(models.Model):
    """The retention of the runs of one definition, or of all definitions without their own policy (empty name).

    `days`: the days after which ended runs are deleted, 0 for never. `failed_days`: the days for failed runs.
    `keep_last`: the number of newest runs that are never deleted.
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
    """The storage of one day: the last measured size of the database, and the number of runs that retention deleted."""

    day_at = MomentField(primary_key=True)
    bytes = models.BigIntegerField(default=0)
    removed = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.bytes} bytes"
