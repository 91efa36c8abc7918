"""The audit log."""

from django.db import models

from .fields import DocumentField, MomentField


class AuditEntry(models.Model):
    """An action of a user or a client, written in the transaction of its effect.

    `request_id`: the id of the HTTP request, as in its response and log lines; empty for other actions.
    """

    at = MomentField()
    actor = models.CharField(max_length=255)
    action = models.CharField(max_length=64)
    object_type = models.CharField(max_length=32)
    object_id = models.CharField(max_length=320)
    reason = models.TextField(default="", blank=True)
    facts = DocumentField(default=dict)
    request_id = models.CharField(max_length=128, default="", db_default="", blank=True)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(name="audit_by_time", fields=["-at"]),
            models.Index(name="audit_of_object", fields=["object_type", "object_id"]),
            models.Index(name="audit_of_request", fields=["request_id"], condition=~models.Q(request_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.object_type} {self.object_id}"
