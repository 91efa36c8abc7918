"""Bulk operations, which the engine executes at a rate, and their results per run."""

from typing import Self

from django.db import models
from django.db.models import Q

from ..core.snapshot import NEVER
from ..core.states import BULK, GATHERING
from ..db.fields import DocumentField, IdField, MomentField, UserKeyField


class BulkOperationQuerySet(models.QuerySet):
    """Queries for bulk operations."""

    def waiting_for_approval(self) -> Self:
        """Return the operations that need the approval of a second user, newest first."""
        return self.filter(state__in=sorted(BULK.open), needs_approval=True, approved_at__isnull=True).order_by("-pk")


class BulkOperation(models.Model):
    """An action on all runs of a selection.

    `options`: those of the action, and the title of the failure group that it had at the start.
    `cursor`: the last selected run. `paced_at`: the time until which the rate is exhausted. `due_at`: the time at which
    the engine continues. `held_until`: the end of the lease of the process that executes it. `needs_approval`: True if
    it starts only after a user other than its author has approved it. `owner_id`: the user on whose behalf it changes
    runs, 0 for no limits.
    """

    id = IdField(primary_key=True)
    action = models.CharField(max_length=32)
    options = DocumentField(default=dict)
    selection = DocumentField(default=dict)
    excluded = DocumentField(default=list)
    state = models.CharField(max_length=16, default=GATHERING)
    resume_state = models.CharField(max_length=16, default="", blank=True)
    reason = models.TextField(default="", blank=True)
    by = models.CharField(max_length=255)
    owner_id = UserKeyField(default=0, db_default=0)
    rate = models.FloatField()
    canary_size = models.IntegerField(default=0)
    canary_share = models.IntegerField(default=100)
    needs_approval = models.BooleanField(default=False, db_default=False)
    approved_by = models.CharField(max_length=255, default="", db_default="", blank=True)
    approved_at = MomentField(null=True)
    verdict = models.TextField(default="", blank=True)
    created_at = MomentField()
    updated_at = MomentField()
    ended_at = MomentField(null=True)
    watched_since = MomentField(null=True)
    due_at = MomentField(default=NEVER)
    paced_at = MomentField(default=0)
    held_until = MomentField(default=0)
    cursor = IdField(default="", blank=True)
    total = models.IntegerField(default=0)
    done = models.IntegerField(default=0)
    refused = models.IntegerField(default=0)
    withdrawn = models.IntegerField(default=0)

    objects = BulkOperationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="bulk_state_is_known", condition=Q(state__in=sorted(BULK.statuses))),
            models.CheckConstraint(
                name="bulk_has_ended_exactly_when_final",
                condition=Q(state__in=sorted(BULK.final), ended_at__isnull=False)
                | Q(state__in=sorted(BULK.open), ended_at__isnull=True),
            ),
        ]
        indexes = [
            models.Index(name="bulk_due", fields=["due_at"], condition=Q(state__in=sorted(BULK.open))),
            models.Index(name="bulk_by_time", fields=["-created_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.action}, by {self.by}"

    @property
    def is_waiting_for_approval(self) -> bool:
        return self.needs_approval and self.approved_at is None and self.state in BULK.open

    @property
    def remaining_count(self) -> int:
        """Return the number of items without a result."""
        return self.total - self.done - self.refused - self.withdrawn


class BulkItem(models.Model):
    """One run of an operation, with its result."""

    WAITING, DONE, REFUSED, WITHDRAWN = OUTCOMES = ("WAITING", "DONE", "REFUSED", "WITHDRAWN")

    operation = models.ForeignKey(BulkOperation, on_delete=models.CASCADE, related_name="items", db_index=False)
    number = models.IntegerField()
    run_id = IdField()
    outcome = models.CharField(max_length=16, default=WAITING)
    answer = models.TextField(default="", blank=True)
    at = MomentField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="one_item_per_operation_and_run", fields=["operation", "run_id"]),
        ]
        indexes = [models.Index(name="bulk_item_by_outcome", fields=["operation", "outcome", "number"])]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.outcome}"
