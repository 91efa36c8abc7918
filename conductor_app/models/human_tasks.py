"""What people have agreed on about a task that waits for one of them: who has taken it, to whom it was handed on."""

from django.db import models
from django.db.models import Q

from .fields import DocumentField, MomentField
from .runs import Task


class HumanTask(models.Model):
    """One task in somebody's hands. Tasks that nobody has touched have no row: their step says whom it asks.

    `is_claimer_external` and `is_external`: taker and assignee are known to the calling application only. `followers`:
    assignments, as clients write them, that follow the assignee once `due_at` has passed.
    """

    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, db_constraint=False, related_name="persons"
    )
    claimed_by = models.CharField(max_length=255, default="", blank=True)
    claimed_at = MomentField(null=True)
    assignee = models.CharField(max_length=255, default="", blank=True)
    is_group = models.BooleanField(default=False)
    is_reassigned = models.BooleanField(default=False)
    due_at = MomentField(null=True)
    is_claimer_external = models.BooleanField(default=False, db_default=False)
    is_external = models.BooleanField(default=False, db_default=False)
    followers = DocumentField(null=True, default=None)
    changed_at = MomentField(null=True)
    changed_by = models.CharField(max_length=255, default="", db_default="", blank=True)

    class Meta:
        indexes = [
            models.Index(
                name="human_task_by_claimer", fields=["claimed_by", "-claimed_at"], condition=~Q(claimed_by="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task_id} with {self.claimed_by or self.assignee}"
