"""Outbox messages, deleted in the transaction that handles them."""

from typing import Any, Self

from django.db import models
from django.db.models.expressions import RawSQL

from ..core.snapshot import NEVER
from .fields import DocumentField, IdField, MomentField

PUBLISH = "publish"
"""The subject of messages to other systems. Built-in workers send them, because a sweep must not wait for a network."""

ALERT = "alert"
"""The sink of alerts. The message contains the address, a webhook or a mailbox."""
LISTENER, TASK_LISTENER = "listener", "task listener"
"""The sinks of notifications to the configured listeners, for runs and for tasks."""

ABOUT_GROUP = "group"
"""The subject of messages about a task group whose tasks may all be resolved."""


OVERDUE_RUN, OVERDUE_TASK = "overdue", "overdue_task"
"""The subjects of messages about a run or a standalone task whose due timers could not be handled. Such a message
contains the error and the tries. It is deleted after the next try, unless that fails too."""
IS_OVERDUE = f"subject IN ('{OVERDUE_RUN}', '{OVERDUE_TASK}')"
UNLISTED_TRIES = 2
"""The number of failed tries before a due timer is listed, so that a fault of the moment is not."""


class MessageQuerySet(models.QuerySet["Message"]):
    """Messages, and those that could not be delivered."""

    def undelivered(self) -> Self:
        """Return the messages that are not tried again unless an operator retries them, and those about due timers."""
        # SQLite uses a partial index only if the query repeats the condition of the index literally.
        condition = f"(due_at = {NEVER} OR ({IS_OVERDUE} AND tries > {UNLISTED_TRIES}))"
        return self.filter(RawSQL(condition, (), output_field=models.BooleanField()))


class Message(models.Model):
    """A message to a run, a sink or a task group (`to`), or about a limit (`to` is empty).

    A message without further tries is never due (`due_at` is NEVER), and `error` has the reason.
    """

    # Set by queries and commands that load more than the row.
    written: Any

    to = IdField(default="", blank=True)
    subject = models.CharField(max_length=32)
    facts = DocumentField(default=dict)
    sent_at = MomentField()
    due_at = MomentField()
    tries = models.IntegerField(default=0)
    error = models.TextField(default="", blank=True)

    objects = MessageQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(name="message_due", fields=["due_at", "id"], condition=~models.Q(subject=PUBLISH)),
            models.Index(name="message_to_publish", fields=["due_at", "id"], condition=models.Q(subject=PUBLISH)),
            models.Index(name="message_to_terminate", fields=["to"], condition=models.Q(subject="terminate")),
            models.Index(name="message_about_group", fields=["to"], condition=models.Q(subject=ABOUT_GROUP)),
            models.Index(
                name="message_overdue", fields=["to"], condition=models.Q(subject__in=[OVERDUE_RUN, OVERDUE_TASK])
            ),
            models.Index(name="message_undelivered", fields=["to", "id"], condition=models.Q(due_at=NEVER)),
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.to or 'the engine'}"


class PulseMessage(models.Model):
    """A message about a standalone task or a task group, written in the transaction of the change.

    If an exchange is configured, messages are sent there, in order per task, and then deleted. Otherwise they are
    deleted with their task.
    """

    task_id = IdField(default="", blank=True)
    group_id = IdField()
    name = models.CharField(max_length=40)
    key = models.CharField(max_length=400)
    routes = DocumentField(default=list)
    payload = DocumentField(default=dict)
    sent_at = MomentField()
    due_at = MomentField(default=NEVER)
    tries = models.IntegerField(default=0)
    error = models.TextField(default="", blank=True)

    class Meta:
        indexes = [
            models.Index(name="notice_of_task", fields=["task_id", "group_id", "id"]),
            models.Index(name="notice_of_group", fields=["group_id", "id"]),
            models.Index(name="notice_due", fields=["due_at", "id"], condition=models.Q(due_at__lt=NEVER)),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.task_id or self.group_id}"
