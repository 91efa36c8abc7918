"""The history of runs, one entry per decision, and the logs of workers."""

from django.db import models

from .fields import DocumentField, IdField, MomentField
from .runs import Run


class HistoryEntry(models.Model):
    """One decision: its effects, its author and its reason."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="history", db_index=False, db_constraint=False)
    revision = models.IntegerField()
    at = MomentField()
    by = models.CharField(max_length=255, default="", blank=True)
    reason = models.TextField(default="", blank=True)
    effects = DocumentField(default=list)

    class Meta:
        verbose_name_plural = "history entries"
        indexes = [models.Index(name="history_of_run", fields=["run", "revision"])]


class TaskLog(models.Model):
    """A log line that a worker wrote for an attempt, which need not exist."""

    attempt_id = IdField()
    at = MomentField()
    line = models.TextField()

    class Meta:
        indexes = [models.Index(name="log_of_attempt", fields=["attempt_id", "at", "id"])]
