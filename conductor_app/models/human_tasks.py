"""The assignment of human tasks: who has claimed a task, and to whom it was reassigned."""

from django.db import models
from django.db.models import Q

from .fields import DocumentField, MomentField
from .runs import Task


class HumanTask(models.Model):
    """The assignment of a task. A task without changes has no row: its step names the assignee.

    `is_claimer_external` and `is_external`: only the calling application knows the claimer or the assignee.
    `followers`: assignments in the format of clients that apply after `due_at`.
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
