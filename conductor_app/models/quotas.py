"""Quotas of callers, and the token buckets of their rates."""

from django.conf import settings
from django.db import models
from django.db.models import F, Value
from django.db.models.functions import Coalesce

from .fields import MomentField

MAX_CALLER_LENGTH = 320


class CallerQuota(models.Model):
    """The quotas of one caller, or the default of all callers (no user and no client).

    A caller is a user (a person, or an application's own user) or a Taskcluster client. A quota of null is the
    default's; 0 is no limit.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True)
    client = models.ForeignKey("conductor.Client", on_delete=models.CASCADE, null=True, blank=True)
    starts_per_second = models.FloatField(null=True, blank=True)
    polls_per_second = models.FloatField(null=True, blank=True)
    searches_per_minute = models.FloatField(null=True, blank=True)
    open_runs = models.IntegerField(null=True, blank=True)
    stored_bytes = models.BigIntegerField(null=True, blank=True)
    updated_at = MomentField()
    updated_by = models.CharField(max_length=255)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Coalesce(F("user"), Value(0)), Coalesce(F("client"), Value("")), name="one_quota_per_caller"
            ),
            models.CheckConstraint(
                name="quota_has_one_caller", condition=~models.Q(user__isnull=False, client__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return str(self.user or self.client or "all callers")


class TokenBucket(models.Model):
    """The requests that a caller may still send now. Processes take from it; it fills at the rate of the quota."""

    caller = models.CharField(max_length=MAX_CALLER_LENGTH)
    resource = models.CharField(max_length=16)
    tokens = models.FloatField()
    updated_at = MomentField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_bucket_per_caller", fields=["caller", "resource"])]
        indexes = [models.Index(name="bucket_by_age", fields=["updated_at"])]

    def __str__(self) -> str:
        return f"{self.resource} of {self.caller}"
