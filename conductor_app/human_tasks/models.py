"""Tables of human tasks with their assignments, and of form templates by name and version."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from ..db.fields import Authored, DocumentField, MomentField, UserKeyField
from ..runs.models import Task


class HumanTask(models.Model):
    """The current assignment of a task. A task that was neither claimed nor reassigned has no row.

    `is_claimer_external` and `is_external`: True if the claimer or the assignee is a user of the calling application,
    not of this server. `claimer_id`: the user of this server that made the claim. `followers`: the assignments that
    apply after `due_at`, in the format of clients.
    """

    task = models.OneToOneField(
        Task, on_delete=models.CASCADE, primary_key=True, db_constraint=False, related_name="persons"
    )
    claimed_by = models.CharField(max_length=255, default="", blank=True)
    claimer_id = UserKeyField(null=True)
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


class FormTemplate(Authored):
    """One version of a form template; `document` holds `jsonSchema`, `templateUI`, `ownerApp` and `tags`."""

    access_names: ClassVar[dict[str, str]] = {"USER_FORM_TEMPLATE": "name"}

    name = models.CharField(max_length=255)
    version = models.IntegerField(default=1)
    document = DocumentField(default=dict)

    class Meta:
        ordering = ["name", "-version"]
        constraints = [
            models.UniqueConstraint(name="one_form_template_per_name_and_version", fields=["name", "version"])
        ]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"
