"""Preferences of a user: time zone and columns of lists for the pages, and digests by email."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from ..core.snapshot import NEVER
from .fields import DocumentField, MomentField


class Preference(models.Model):
    """A preference of a user, by name."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="preference"
    )
    choices = DocumentField(default=dict)

    def __str__(self) -> str:
        return f"preferences of {self.user}"


class DigestSubscription(models.Model):
    """An email that a user receives every day or every week. `next_at`: the time of the next one."""

    DAILY, WEEKLY = PERIODS = ("daily", "weekly")

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="digest"
    )
    period = models.CharField(max_length=16)
    zone = models.CharField(max_length=64, default="UTC")
    language = models.CharField(max_length=16, default="en")
    next_at = MomentField(default=NEVER)

    class Meta:
        constraints = [
            models.CheckConstraint(name="digest_period_is_known", condition=Q(period__in=("daily", "weekly")))
        ]
        indexes = [models.Index(name="digest_due", fields=["next_at"])]

    def __str__(self) -> str:
        return f"{self.period} digest of {self.user_id}"
