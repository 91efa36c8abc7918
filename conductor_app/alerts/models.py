"""Saved views of runs, alerts on them, the targets of alerts, and the notifications that were sent."""

from typing import Any

from django.db import models
from django.db.models import Q

from ..core.alerts import ALERT_KINDS
from ..core.snapshot import NEVER
from ..db.fields import Authored, DocumentField, MomentField, UserKeyField

STORED_TARGET_KINDS = ("slack", "teams", "pagerduty", "opsgenie", "webhook", "email")
"""Kinds of alert targets that a row may have. Nothing is sent to a target of the kind `opsgenie`."""


class SavedView(models.Model):
    """A selection of runs with a name, private or shared. `is_tile`: True if the overview shows its count.

    `owner`: the name of the owner when the view was saved. `owner_id`: its user; 0 if it belongs to no user, None if it
    belongs to the user with that name, as when a process of the previous version has saved it.
    """

    name = models.CharField(max_length=120)
    owner = models.CharField(max_length=255)
    owner_id = UserKeyField(null=True, blank=True)
    is_shared = models.BooleanField(default=False)
    is_tile = models.BooleanField(default=False, db_default=False)
    selection = DocumentField(default=dict)
    created_at = MomentField()

    class Meta:
        constraints = [models.UniqueConstraint(name="one_view_per_user_and_name", fields=["owner_id", "owner", "name"])]
        indexes = [models.Index(name="view_shared", fields=["name"], condition=Q(is_shared=True))]

    def __str__(self) -> str:
        return self.name


class AlertTarget(Authored):
    """A system or mailbox that alerts are sent to.

    `settings`: the settings of its kind that are not secret. `sealed`: the secret ones, encrypted for `seal_name`.
    """

    name = models.CharField(max_length=120, unique=True)
    kind = models.CharField(max_length=16)
    settings = DocumentField(default=dict)
    sealed = models.TextField(default="", blank=True)
    seal_name = models.CharField(max_length=64)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(name="alert_target_kind_is_known", condition=Q(kind__in=STORED_TARGET_KINDS))
        ]

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """A condition on a view, or a rule, which has no view, on one workflow or all of them.

    `next_at`: the time of the next check; `last_fired_at`: the time of the last firing.

    `incident_at`: the time of the first firing since the condition was last not met; None if it is not met.
    `budget`: the scope, name and period of the budget of an alert of the kind `budget`; None for all budgets.
    `workflow`: the workflow of a rule; empty for all. `seen`: what a rule found at its last check, and for which of it
    the rule fired.
    """

    view = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="alerts", null=True)
    workflow = models.CharField(max_length=255, default="", db_default="", blank=True)
    seen = DocumentField(null=True, blank=True)
    kind = models.CharField(max_length=16)
    threshold = models.IntegerField()
    window_minutes = models.IntegerField()
    repeat_minutes = models.IntegerField()
    targets = models.ManyToManyField(AlertTarget, related_name="alerts")
    budget = DocumentField(null=True, blank=True)
    by = models.CharField(max_length=255)
    next_at = MomentField(default=NEVER)
    last_fired_at = MomentField(null=True)
    incident_at = MomentField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(name="alert_kind_is_known", condition=Q(kind__in=ALERT_KINDS))]
        indexes = [models.Index(name="alert_due", fields=["next_at"])]

    def __str__(self) -> str:
        return f"{self.kind} on {self.subject}"

    @property
    def selection(self) -> dict[str, Any]:
        """Return the selection of the view. That of a rule is empty."""
        return self.view.selection if self.view is not None else {}

    @property
    def subject(self) -> str:
        """Return the name of the view, or of the workflow of a rule."""
        return self.view.name if self.view is not None else self.workflow or "All workflows"


class AlertFiring(models.Model):
    """A notification of a target: the firing or the end of an alert, or a test; and the state of its delivery.

    `alert` is None for a test. `recipient`: the name of the target, which may no longer exist. `answer`: what the
    target replied when it accepted the notification.
    """

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="firings", db_index=False, null=True)
    target = models.ForeignKey(
        AlertTarget, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False, null=True
    )
    recipient = models.CharField(max_length=120, default="", db_default="", blank=True)
    at = MomentField()
    sentence = models.TextField()
    channel = models.CharField(max_length=16)
    delivered_at = MomentField(null=True)
    tries = models.IntegerField(default=0)
    error = models.TextField(default="", blank=True)
    answer = models.TextField(default="", db_default="", blank=True)

    class Meta:
        indexes = [models.Index(name="firing_of_alert", fields=["alert", "-at"])]

    def __str__(self) -> str:
        return self.sentence
