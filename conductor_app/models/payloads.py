"""Payloads outside the database, and the runs that use them."""

from django.db import models
from django.db.models import Q

from .fields import IdField, MomentField


class StoredPayload(models.Model):
    """A payload in blob storage. `size` is null during the upload; an unused payload is deleted at `expires_at`."""

    path = models.CharField(max_length=255, primary_key=True)
    size = models.BigIntegerField(null=True)
    created_at = MomentField()
    expires_at = MomentField(null=True)

    class Meta:
        indexes = [models.Index(name="payload_to_forget", fields=["expires_at"], condition=Q(expires_at__isnull=False))]

    def __str__(self) -> str:
        return self.path


class PayloadReference(models.Model):
    """The use of a payload by a run."""

    payload = models.ForeignKey(StoredPayload, on_delete=models.CASCADE, related_name="uses", db_index=False)
    run_id = IdField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_use_per_payload_and_run", fields=["payload", "run_id"])]
        indexes = [models.Index(name="payload_of_run", fields=["run_id"])]

    def __str__(self) -> str:
        return f"{self.payload_id} of {self.run_id}"
