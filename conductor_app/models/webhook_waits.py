"""Attempts that wait for webhooks, indexed by their conditions."""

from django.db import models

from .fields import DocumentField, IdField, MomentField


class WebhookWait(models.Model):
    """One WAIT_FOR_WEBHOOK attempt, by the digest of its condition.

    The row stays when the attempt ends: queries also check the status of the attempt, and a sweep deletes old rows.
    """

    attempt_id = IdField(primary_key=True)
    workflow = models.CharField(max_length=255)
    version = models.IntegerField()
    digest = models.CharField(max_length=64)
    created_at = MomentField()

    class Meta:
        indexes = [
            models.Index(name="webhook_wait_by_digest", fields=["workflow", "digest", "created_at"]),
            models.Index(name="webhook_wait_by_time", fields=["created_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.attempt_id} of {self.workflow}"


class WebhookPaths(models.Model):
    """A set of payload paths that conditions of a workflow use. Events are evaluated at these paths."""

    workflow = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    paths = DocumentField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_row_per_workflow_and_paths", fields=["workflow", "digest"])]

    def __str__(self) -> str:
        return f"{self.paths} of {self.workflow}"
