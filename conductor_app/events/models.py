"""Tables of events, event handlers, their results, and webhooks."""

from typing import ClassVar

from django.db import models

from ..db.fields import Authored, DocumentField, IdField, MomentField, UserKeyField

IN_PROGRESS, COMPLETED, FAILED = "IN_PROGRESS", "COMPLETED", "FAILED"
"""The statuses of an action of a handler."""
MATCHED, NOT_MATCHED = "MATCHED", "NOT_MATCHED"
"""The results of a handler's condition, besides FAILED if it cannot be evaluated."""
MAX_NAME_LENGTH = 255


class EventHandler(Authored):
    """An event handler as its author wrote it. The fields that are compared with every event are also columns."""

    access_names: ClassVar[dict[str, str]] = {"EVENT_HANDLER": "name"}

    name = models.CharField(max_length=MAX_NAME_LENGTH, unique=True)
    event = models.CharField(max_length=MAX_NAME_LENGTH)
    is_active = models.BooleanField(default=False)
    owner_id = UserKeyField(default=0, db_default=0)
    document = DocumentField(default=dict)
    revision = models.IntegerField(default=1)

    class Meta:
        ordering = ["name"]
        indexes = [models.Index(name="handler_of_event", fields=["event", "is_active"])]

    def __str__(self) -> str:
        return self.name


class EventDelivery(models.Model):
    """A received event. A repeated delivery is counted, but not processed."""

    event = models.CharField(max_length=MAX_NAME_LENGTH)
    message_id = models.CharField(max_length=MAX_NAME_LENGTH)
    source = models.CharField(max_length=64, default="", blank=True)
    received_at = MomentField()
    payload = DocumentField(null=True)
    payload_size = models.IntegerField(default=0)
    duplicates = models.IntegerField(default=0)
    replay_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="replays")

    class Meta:
        verbose_name_plural = "event deliveries"
        constraints = [models.UniqueConstraint(name="one_delivery_per_message", fields=["event", "message_id"])]
        indexes = [
            models.Index(name="delivery_by_time", fields=["-received_at", "-id"]),
            models.Index(name="delivery_of_event", fields=["event", "-received_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.event} ({self.message_id})"


class HandlerEvaluation(models.Model):
    """The evaluation of a handler for an event: its condition, the values in it, and the result."""

    access_names: ClassVar[dict[str, str]] = {"EVENT_HANDLER": "handler"}

    delivery = models.ForeignKey(EventDelivery, on_delete=models.CASCADE, related_name="verdicts")
    handler = models.CharField(max_length=MAX_NAME_LENGTH)
    at = MomentField()
    outcome = models.CharField(max_length=16)
    condition = models.TextField(default="", blank=True)
    seen = DocumentField(default=dict)
    value = DocumentField(null=True)
    error = models.TextField(default="", blank=True)

    class Meta:
        indexes = [
            models.Index(name="verdict_of_handler", fields=["handler", "-at"]),
            models.Index(name="verdict_by_outcome", fields=["outcome", "-at"]),
        ]

    def __str__(self) -> str:
        return f"{self.handler}: {self.outcome}"


class EventAction(models.Model):
    """One action of a handler for one event. `document`: the action at the time of the event."""

    access_names: ClassVar[dict[str, str]] = {"EVENT_HANDLER": "handler"}

    delivery = models.ForeignKey(EventDelivery, on_delete=models.CASCADE, related_name="actions", db_index=False)
    handler = models.CharField(max_length=MAX_NAME_LENGTH)
    position = models.IntegerField()
    action = models.CharField(max_length=64)
    document = DocumentField(default=dict)
    status = models.CharField(max_length=16, default=IN_PROGRESS)
    owner_id = UserKeyField(default=0, db_default=0)
    created_at = MomentField()
    ended_at = MomentField(null=True)
    run_id = IdField(default="", blank=True)
    output = DocumentField(default=dict)
    error = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="one_action_per_delivery_handler_and_position", fields=["delivery", "handler", "position"]
            )
        ]
        indexes = [
            models.Index(name="action_of_handler", fields=["handler", "-created_at"]),
            models.Index(name="action_failed", fields=["-created_at"], condition=models.Q(status=FAILED)),
        ]

    def __str__(self) -> str:
        return f"{self.handler}: {self.action}, {self.status}"


class EventListener(models.Model):
    """A process that receives events from another system, with the state of its connection.

    It updates its row regularly.
    """

    event = models.CharField(max_length=MAX_NAME_LENGTH)
    process = models.CharField(max_length=128)
    seen_at = MomentField()
    connected_at = MomentField(null=True)
    last_message_at = MomentField(null=True)
    error = models.TextField(default="", blank=True)
    failed_at = MomentField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(name="one_listener_per_event_and_process", fields=["event", "process"])]
        indexes = [models.Index(name="listener_by_seen_at", fields=["seen_at"])]

    def __str__(self) -> str:
        return f"{self.process} listens to {self.event}"


class Webhook(models.Model):
    """An address at which another system sends events. Its secret is stored encrypted."""

    access_names: ClassVar[dict[str, str]] = {"WEBHOOK": "name"}

    id = IdField(primary_key=True)
    name = models.CharField(max_length=200, unique=True)
    owner_id = UserKeyField(default=0, db_default=0)
    document = DocumentField(default=dict)
    sealed = models.TextField(default="", blank=True)
    refusals = models.IntegerField(default=0, db_default=0)
    refused_at = MomentField(null=True)
    created_at = MomentField()
    created_by = models.CharField(max_length=255, default="", blank=True)
    updated_at = MomentField(default=0)
    updated_by = models.CharField(max_length=255, default="", blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


def built_in_handler_name(webhook: str) -> str:
    """Return the name under which the results of the handler built into a webhook are stored."""
    return f"webhook {webhook}"


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
