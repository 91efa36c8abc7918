"""How long finished runs are kept."""

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
