"""Messages: rows that say something to somebody else, deleted in the transaction that hears them."""

from django.db import models

from .fields import DocumentField, IdField, MomentField


class Message(models.Model):
    """Something said to a run (`to`), or about a limit (`to` is empty)."""

    to = IdField(default="", blank=True)
    subject = models.CharField(max_length=32)
    facts = DocumentField(default=dict)
    sent_at = MomentField()
    due_at = MomentField()
    tries = models.IntegerField(default=0)
    error = models.TextField(default="", blank=True)

    class Meta:
        indexes = [models.Index(name="message_due", fields=["due_at", "id"])]

    def __str__(self) -> str:
        return f"{self.subject} to {self.to or 'the engine'}"
