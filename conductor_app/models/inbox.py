"""Messages that clients send to a run, stored until a step consumes them or the run ends."""

from django.db import models

from .fields import DocumentField, IdField, MomentField
from .runs import Run


class InboxMessage(models.Model):
    """A message in the inbox of a run, which counts its messages."""

    number = models.BigAutoField(primary_key=True)
    id = IdField()
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="inbox_messages", db_index=False)
    received_at = MomentField()
    payload = DocumentField(default=dict)

    class Meta:
        indexes = [models.Index(name="inbox_of_run", fields=["run", "number"])]

    def __str__(self) -> str:
        return self.id
