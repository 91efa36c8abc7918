"""Messages: rows that say something to somebody else, deleted in the transaction that hears them."""

from django.db import models

from .fields import DocumentField, IdField, MomentField

PUBLISH = "publish"
"""The subject of what is told to other systems: by the built-in workers, since nothing remote waits in a sweep."""

LISTENER = "listener"
"""The sink of what is posted to the listener that the server's settings name."""


class Message(models.Model):
    """Something said to a run or to a sink (`to`), or about a limit (`to` is empty)."""

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
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.to or 'the engine'}"
