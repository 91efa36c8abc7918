"""What people have agreed on about a task that waits for one of them: who has taken it, to whom it was handed on."""

from django.db import models

from .fields import MomentField
from .runs import Task


class PersonsTask(models.Model):
    """One task in somebody's hands. Tasks that nobody has touched have no row: their step says whom it asks."""

    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, db_constraint=False, related_name="persons"
    )
    taken_by = models.CharField(max_length=255, default="", blank=True)
    taken_at = MomentField(null=True)
    assignee = models.CharField(max_length=255, default="", blank=True)
    is_group = models.BooleanField(default=False)
    is_reassigned = models.BooleanField(default=False)
    due_at = MomentField(null=True)

    def __str__(self) -> str:
        return f"{self.task_id} with {self.taken_by or self.assignee}"
