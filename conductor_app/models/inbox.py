"""Messages that clients send to a run, kept until a step of it takes them or it ends."""

from django.db import models

from .fields import DocumentField, IdField, MomentField
from .runs import Run


class InboxMessage(models.Model):
    """One message; the run counts how many wait for it."""

    number = models.BigAutoField(primary_key=True)
    id = IdField()
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="inbox_messages", db_index=False)
    received_at = MomentField()
    payload = DocumentField(default=dict)

    class Meta:
        indexes = [models.Index(name="inbox_of_run", fields=["run", "number"])]

    def __str__(self) -> str:
        return self.id
