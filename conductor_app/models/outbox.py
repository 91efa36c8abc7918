"""Messages: rows that say something to somebody else, deleted in the transaction that hears them."""

from django.db import models

from ..core.snapshot import NEVER
from .fields import DocumentField, IdField, MomentField

PUBLISH = "publish"
"""The subject of what is told to other systems: by the built-in workers, since nothing remote waits in a sweep."""

ALERT = "alert"
"""The sink of alerts: a webhook or a mailbox, named beside it."""
LISTENER, TASK_LISTENER = "listener", "task listener"
"""The sinks of what is posted to the listeners that the server's settings name: of runs, and of tasks."""

ABOUT_GROUP = "group"
"""The subject of what is said to whoever looks at a group of stand-alone tasks: all of it may be resolved by now."""


class Message(models.Model):
    """Something said to a run, to a sink or to whoever looks at a group (`to`), or about a limit (`to` is empty)."""

    to = IdField(default="", blank=True)
    subject = models.CharField(max_length=32)
    facts = DocumentField(default=dict)
    sent_at = MomentField()
    due_at = MomentField()
    tries = models.IntegerField(default=0)
    error = models.TextField(default="", blank=True)

    class Meta:
        indexes = [
            models.Index(name="message_due", fields=["due_at", "id"], condition=~models.Q(subject=PUBLISH)),
            models.Index(name="message_to_publish", fields=["due_at", "id"], condition=models.Q(subject=PUBLISH)),
            models.Index(name="message_about_group", fields=["to"], condition=models.Q(subject=ABOUT_GROUP)),
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.to or 'the engine'}"


class PulseMessage(models.Model):
    """What is told of a stand-alone task, or of a group: written with the transition that it tells of.

    Where an exchange is configured it goes there, in order task by task, and is deleted when the exchange has it;
    else it stays, to be read, as long as its task.
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
