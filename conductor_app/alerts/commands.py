"""Commands on saved views and alerts, and the check that runs once a minute. Alerts are sent through the outbox."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from ... import clock
from ...core.alert_messages import RESOLVE, TRIGGER, AlertNotice
from ...core.alert_targets import INCIDENT_KINDS
from ...core.alerts import BUDGET, DAY_MINUTES, MINUTE_MS, QuietHours, find_rule_problem
from ...core.errors import Conflict, Invalid, NotFound
from ...insight.bulk import selections
from ...insight.failures.alerts import measure_alert, newest_failure, rule_of
from ...models import Alert, AlertFiring, AlertTarget, ModelBudget, SavedView
from .. import audit
from ..sweep_items import handle_each
from .alert_targets import send_notice

MAX_VIEWS = 200
MAX_ALERT_TARGETS = 10
RETENTION_MS = 90 * 86_400_000


def save_view(
    name: str,
    selection: Mapping[str, Any],
    by: str,
    is_shared: bool = False,
    is_tile: bool = False,
    *,
    owner: str = "",
    reason: str = "",
) -> SavedView:
    """Save a selection of runs as a view of its owner. A view of the same name is replaced.

    `owner`: `by`, if it is not given.

    Raises:
        Invalid: when the name or the selection is invalid.
        Conflict: when the owner has too many views.
    """
    name, owner = name.strip(), (owner or by)[:255]
    if not name or len(name) > 120 or "\0" in name:
        raise Invalid(f"The name of a view must have 1 to 120 characters (got {name[:130]!r}).")
    known = selections.clean_selection(selection)
    selections.selected_runs(known).order_by()[:1].exists()
    with transaction.atomic():
        if SavedView.objects.filter(owner=owner).exclude(name=name).count() >= MAX_VIEWS:
            raise Conflict(f"{owner} already has {MAX_VIEWS} views. Delete one first.")
        values = {"selection": known, "is_shared": is_shared, "is_tile": is_tile, "created_at": clock.now()}
        view, _ = SavedView.objects.update_or_create(owner=owner, name=name, defaults=values)
        _record_change("view", view.pk, by, "save", {"name": name, "selection": known}, reason)
    return view


def remove_view(view_id: int, by: str, *, owner: str = "", reason: str = "") -> None:
    """Delete a view of the caller, or of another owner, with its alerts.

    Raises:
        NotFound: when the owner has no view with this id.
    """
    with transaction.atomic():
        view = SavedView.objects.filter(pk=view_id, owner=owner or by).first()
        if view is None:
            raise NotFound(f"You have no view with the id {view_id}.")
        for alert in view.alerts.filter(incident_at__isnull=False):
            _close_incident(alert, "the view was deleted", clock.now())
        view.delete()
        _record_change("view", view_id, by, "remove", {"name": view.name}, reason)


def save_alert(
    view: SavedView,
    kind: str,
    threshold: int,
    window: int,
    repeat: int,
    by: str,
    *,
    targets: Sequence[int] = (),
    quiet: QuietHours | None = None,
    budget: Mapping[str, str] | None = None,
    reason: str = "",
) -> Alert:
    """Create an alert that fires when a view, or a budget, meets a condition. `window` and `repeat` are in minutes.

    `targets`: ids of the alert targets. `budget`: the scope, name and period of a budget, for an alert of the kind
    `budget`; None for all budgets.

    Raises:
        Invalid: when a value is out of its range, or the targets or the budget are missing or unknown.
    """
    if budget is not None and (kind != BUDGET or not ModelBudget.objects.filter(**budget).exists()):
        raise Invalid("There is no such budget, or the alert is of another kind.")
    if problem := find_rule_problem(kind, threshold, window, repeat):
        raise Invalid(problem)
    if quiet is not None and not (0 <= quiet.begins < DAY_MINUTES and 0 <= quiet.ends < DAY_MINUTES):
        raise Invalid("Quiet hours must be two times of day, such as 22:00 and 07:30.")
    now = clock.now()
    with transaction.atomic():
        rows = _find_targets(targets)
        alert = Alert.objects.create(
            view=view, kind=kind, threshold=threshold, window_minutes=window, repeat_minutes=repeat,
            by=by[:255], next_at=now, budget=dict(budget) if budget else None,
            **({"quiet_from": quiet.begins, "quiet_until": quiet.ends, "zone": quiet.zone} if quiet else {}),
        )  # fmt: skip
        alert.targets.set(rows)
        facts = {"view": view.name, "kind": kind, "threshold": threshold, **({"budget": budget} if budget else {})}
        _record_change("alert", alert.pk, by, "save", facts, reason)
    return alert


def _find_targets(ids: Sequence[int]) -> list[AlertTarget]:
    if not 1 <= len(set(ids)) <= MAX_ALERT_TARGETS:
        raise Invalid(f"Select 1 to {MAX_ALERT_TARGETS} targets for the alert.")
    rows = list(AlertTarget.objects.filter(pk__in=ids))
    if len(rows) != len(set(ids)):
        raise Invalid("A selected target no longer exists.")
    return rows


def remove_alert(alert_id: int, by: str, reason: str = "") -> None:
    """Delete an alert.

    Raises:
        NotFound: when there is no alert with this id.
    """
    with transaction.atomic():
        alert = Alert.objects.select_for_update(of=("self",)).select_related("view").filter(pk=alert_id).first()
        if alert is None:
            raise NotFound(f"There is no alert {alert_id}.")
        _close_incident(alert, "the alert was deleted", clock.now())
        alert.delete()
        _record_change("alert", alert_id, by, "remove", {"view": alert.view.name}, reason)


def check_due_alerts(limit: int) -> int:
    """Check up to `limit` due alerts and return their number."""
    now = clock.now()
    AlertFiring.objects.filter(at__lt=now - RETENTION_MS).delete()
    due = Alert.objects.filter(next_at__lte=now).order_by("next_at").values_list("pk", flat=True)
    return handle_each(list(due[:limit]), _check_alert)


def _check_alert(alert_id: int) -> None:
    """Fire an alert if its condition is met. The update of `next_at` lets one process check it per minute."""
    now = clock.now()
    if not Alert.objects.filter(pk=alert_id, next_at__lte=now).update(next_at=now + MINUTE_MS):
        return
    alert = Alert.objects.select_related("view").get(pk=alert_id)
    rule = rule_of(alert)
    may_fire = not rule.is_quiet(now) and (alert.last_fired_at is None or now - alert.last_fired_at >= rule.repeat_ms)
    if not may_fire and alert.incident_at is None:
        return
    found = measure_alert(alert, now)
    is_met, sentence = found.is_met, found.sentence
    with transaction.atomic():
        if is_met and may_fire:
            cause = newest_failure(alert, now)
            _fire(alert, f"{sentence}. Latest failure: {cause}" if cause else sentence, now)
        elif not is_met and alert.incident_at is not None:
            _close_incident(alert, sentence, now)
            Alert.objects.filter(pk=alert_id).update(incident_at=None)


def _fire(alert: Alert, sentence: str, now: int) -> None:
    """Notify all targets. Repeated firings belong to the incident that the first one opened."""
    alert.incident_at = alert.incident_at or now
    Alert.objects.filter(pk=alert.pk).update(last_fired_at=now, incident_at=alert.incident_at)
    for target in alert.targets.all():
        send_notice(target, _notice(alert, TRIGGER, sentence, now), alert)


def _close_incident(alert: Alert, sentence: str, now: int) -> None:
    """Notify the targets whose incident stays open until the alert clears."""
    if alert.incident_at is None:
        return
    for target in alert.targets.filter(kind__in=sorted(INCIDENT_KINDS)):
        send_notice(target, _notice(alert, RESOLVE, f"resolved: {sentence}", now), alert)


def _notice(alert: Alert, event: str, sentence: str, now: int) -> AlertNotice:
    # The time makes the incident unique among servers that share an account of the target.
    incident = f"conductor-alert-{alert.pk}-{alert.incident_at}"
    return AlertNotice(event, alert.view.name, f"{alert.view.name}: {sentence}", now, incident, alert.pk)


def _record_change(kind: str, id: int, by: str, action: str, facts: Mapping[str, Any], reason: str = "") -> None:
    audit.record(kind, str(id), action, by, reason=reason, facts=facts)
