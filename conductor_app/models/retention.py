"""How long finished runs are kept, and how the database grew from day to day."""

from django.db import models

from .fields import MomentField


class RetentionPolicy(models.Model):
    """For the runs of one definition, or for all that have no policy of their own (an empty name).

    `days`: that a run is kept after its end, 0 is for ever. `failed_days`: the same for runs that ended badly.
    `keep_last`: so many of the newest runs stay, however old they are.
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
    """One day: how large the database was when it was looked at last, and how many runs retention has removed."""

    day_at = MomentField(primary_key=True)
    bytes = models.BigIntegerField(default=0)
    removed = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.bytes} bytes"
