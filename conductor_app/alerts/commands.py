"""Commands on saved views, alerts and their targets, and the check of alerts, which runs once a minute.

Notifications are sent through the outbox. The secrets of targets are stored encrypted; pages, logs and the audit log
never contain them.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError

from ..access import audit, encryption
from ..access.authentication import current_user_id
from ..bulk import selections
from ..core import alerts
from ..core.errors import Conflict, Invalid, NotFound
from ..db.database import transaction
from ..runs.models import ALERT, PUBLISH
from ..runs.store.due_rows import handle_each
from ..runs.store.outbox import send
from ..utils import clock, randomness
from .models import Alert, AlertFiring, AlertTarget, SavedView
from .queries import (
    NOTHING_FOUND,
    check_rule,
    measure_alert,
    newest_failure,
    own_views,
    rule_of,
    subject_of,
    views_without_user,
)

MAX_TARGETS = 100
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

    `owner`: the name of an owner that is no user. If it is not given, the view belongs to the caller.

    Raises:
        Invalid: when the name or the selection is invalid.
        Conflict: when the owner has too many views.
    """
    name, views = name.strip(), views_without_user(owner) if owner else own_views(by)
    if not name or len(name) > 120 or "\0" in name:
        raise Invalid(f"The name of a view must have 1 to 120 characters (got {name[:130]!r}).")
    known = selections.clean_selection(selection)
    selections.selected_runs(known).order_by()[:1].exists()
    with transaction.atomic():
        if views.exclude(name=name).count() >= MAX_VIEWS:
            raise Conflict(f"{owner or by} already has {MAX_VIEWS} views. Delete one first.")
        values = {"selection": known, "is_shared": is_shared, "is_tile": is_tile, "created_at": clock.now()}
        values |= {"owner": (owner or by)[:255], "owner_id": 0 if owner else current_user_id() or None}
        view, _ = views.update_or_create(name=name, defaults=values)
        audit.record("view", str(view.pk), "save", by, reason=reason, facts={"name": name, "selection": known})
    return view


def remove_view(view_id: int, by: str, *, owner: str = "", reason: str = "") -> None:
    """Delete a view of the caller, or of another owner, with its alerts.

    Raises:
        NotFound: when the owner has no view with this id.
    """
    with transaction.atomic():
        view = (views_without_user(owner) if owner else own_views(by)).filter(pk=view_id).first()
        if view is None:
            raise NotFound(f"You have no view with the id {view_id}.")
        for alert in view.alerts.filter(incident_at__isnull=False):
            _close_incident(alert, "the view was deleted", clock.now())
        view.delete()
        audit.record("view", str(view_id), "remove", by, reason=reason, facts={"name": view.name})


def save_alert(
    view: SavedView,
    kind: str,
    threshold: int,
    window: int,
    repeat: int,
    by: str,
    *,
    targets: Sequence[int] = (),
    budget: Mapping[str, str] | None = None,
    reason: str = "",
) -> Alert:
    """Create an alert that fires when a view, or a budget, meets a condition. `window` and `repeat` are in minutes.

    `targets`: ids of the alert targets. `budget`: the scope, name and period of a budget, for an alert of the kind
    `budget`; None for all budgets.

    Raises:
        Invalid: when a value is out of its range, or the targets or the budget are missing or unknown.
    """
    if budget is not None and (kind != alerts.BUDGET or not subject_of(kind).exists(budget)):
        raise Invalid("There is no such budget, or the alert is of another kind.")
    if problem := alerts.find_rule_problem(kind, threshold, window, repeat):
        raise Invalid(problem)
    now = clock.now()
    with transaction.atomic():
        rows = _find_targets(targets)
        alert = Alert.objects.create(
            view=view, kind=kind, threshold=threshold, window_minutes=window, repeat_minutes=repeat,
            by=by[:255], next_at=now, budget=dict(budget) if budget else None,
        )  # fmt: skip
        alert.targets.set(rows)
        facts = {"view": view.name, "kind": kind, "threshold": threshold, **({"budget": budget} if budget else {})}
        audit.record("alert", str(alert.pk), "save", by, reason=reason, facts=facts)
    return alert


def turn_on_rule(kind: str, workflow: str, targets: Sequence[int], by: str) -> Alert:
    """Create a rule on one workflow, or on all if `workflow` is empty.

    It fires for causes that begin after that, and for queues that are without workers then or later.

    Raises:
        Invalid: when the kind is unknown, or the targets are missing or unknown.
        Conflict: when the rule exists.
    """
    if kind not in alerts.RULE_KINDS:
        raise Invalid(f"Unknown rule {kind[:40]!r}. Use one of: {', '.join(alerts.RULE_KINDS)}.")
    now, workflow = clock.now(), workflow[:255]
    with transaction.atomic():
        rows = _find_targets(targets)
        if Alert.objects.filter(kind=kind, workflow=workflow).exists():
            raise Conflict("This rule is on. Turn it off first to change its targets.")
        alert = Alert(kind=kind, workflow=workflow, threshold=1, window_minutes=1, repeat_minutes=1, by=by[:255])
        is_on_queues = kind == alerts.UNPOLLED_QUEUE
        alert.next_at, alert.seen = now, NOTHING_FOUND if is_on_queues else check_rule(alert, now).document()
        alert.save()
        alert.targets.set(rows)
        audit.record("alert", str(alert.pk), "save", by, facts={"kind": kind, "workflow": alert.subject})
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
        facts = {"view" if alert.view else "workflow": alert.subject}
        alert.delete()
        audit.record("alert", str(alert_id), "remove", by, reason=reason, facts=facts)


def check_due_alerts(limit: int) -> int:
    """Check up to `limit` due alerts and return their number."""
    now = clock.now()
    AlertFiring.objects.filter(at__lt=now - RETENTION_MS).delete()
    due = Alert.objects.filter(next_at__lte=now).order_by("next_at").values_list("pk", flat=True)
    return handle_each(list(due[:limit]), _check_alert)


def _check_alert(alert_id: int) -> None:
    """Fire an alert if its condition is met. The update of `next_at` lets one process check it per minute."""
    now = clock.now()
    if not Alert.objects.filter(pk=alert_id, next_at__lte=now).update(next_at=now + alerts.MINUTE_MS):
        return
    alert = Alert.objects.select_related("view").get(pk=alert_id)
    if alert.kind in alerts.RULE_KINDS:
        _apply_rule(alert, now)
        return
    rule = rule_of(alert)
    may_fire = alert.last_fired_at is None or now - alert.last_fired_at >= rule.repeat_ms
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


def _apply_rule(alert: Alert, now: int) -> None:
    """Fire a rule for what is new, and store what it found."""
    check = check_rule(alert, now)
    with transaction.atomic():
        if check.new:
            _fire(alert, check.sentence(alert.kind), now)
        elif alert.incident_at is not None and not check.is_open:
            _close_incident(alert, "nothing is left of what the alert fired for", now)
            Alert.objects.filter(pk=alert.pk).update(incident_at=None)
        if alert.seen != check.document():
            Alert.objects.filter(pk=alert.pk).update(seen=check.document())


def _fire(alert: Alert, sentence: str, now: int) -> None:
    """Notify all targets. Repeated firings belong to the incident that the first one opened."""
    alert.incident_at = alert.incident_at or now
    Alert.objects.filter(pk=alert.pk).update(last_fired_at=now, incident_at=alert.incident_at)
    for target in alert.targets.all():
        send_notice(target, _notice(alert, alerts.TRIGGER, sentence, now), alert)


def _close_incident(alert: Alert, sentence: str, now: int) -> None:
    """Notify the targets whose incident stays open until the alert clears."""
    if alert.incident_at is None:
        return
    for target in alert.targets.filter(kind__in=sorted(alerts.INCIDENT_KINDS)):
        send_notice(target, _notice(alert, alerts.RESOLVE, f"resolved: {sentence}", now), alert)


def _notice(alert: Alert, event: str, sentence: str, now: int) -> alerts.AlertNotice:
    # The time makes the incident unique among servers that share an account of the target.
    incident = f"conductor-alert-{alert.pk}-{alert.incident_at}"
    return alerts.AlertNotice(event, alert.subject, f"{alert.subject}: {sentence}", now, incident, alert.pk)


def create_target(kind: str, name: str, given: Mapping[str, str], by: str) -> AlertTarget:
    """Create an alert target.

    Raises:
        Conflict: when the name is taken, or there are too many targets.
    """
    if AlertTarget.objects.count() >= MAX_TARGETS:
        raise Conflict(f"There are already {MAX_TARGETS} alert targets. Delete one first.")
    row = AlertTarget(kind=kind, seal_name=f"alert target {randomness.random_hex()}")
    row.created_at, row.created_by = clock.now(), by[:255]
    return _save_target(row, name, given, by)


def update_target(target_id: int, name: str, given: Mapping[str, str], by: str) -> AlertTarget:
    """Replace the settings of a target. A secret that is empty keeps its value.

    Raises:
        Conflict: when the name is taken.
    """
    return _save_target(find_target(target_id), name, given, by)


def _save_target(row: AlertTarget, name: str, given: Mapping[str, str], by: str) -> AlertTarget:
    action = "create" if row.pk is None else "overwrite"
    row.name = name.strip()
    if not row.name or len(row.name) > 120 or not row.name.isprintable():
        raise Invalid("The name of an alert target must have 1 to 120 printable characters.")
    settings = alerts.clean_target_settings(row.kind, given, _stored_settings(row))
    if row.kind == alerts.EMAIL:
        _check_addresses(settings["addresses"])
    hidden = alerts.secret_names(row.kind)
    row.sealed = encryption.encrypt(
        row.seal_name, json.dumps({key: value for key, value in settings.items() if key in hidden})
    )
    row.settings = alerts.displayed_settings(row.kind, settings)
    row.updated_at, row.updated_by = clock.now(), by[:255]
    try:
        with transaction.atomic():
            row.save()
            _record_change(row, action, by)
    except IntegrityError:
        raise Conflict(f"An alert target with the name {row.name} already exists.") from None
    return row


def _stored_settings(row: AlertTarget) -> dict[str, str]:
    """Return the stored settings. Secrets that no key decrypts have to be entered again."""
    try:
        return target_settings(row) if row.sealed else {}
    except encryption.DecryptionFailed:
        return {}


def stored_names(row: AlertTarget) -> frozenset[str]:
    """Return the names of the settings that a target has. Those of secrets keep their values if none is entered."""
    return frozenset(_stored_settings(row))


def _check_addresses(text: str) -> None:
    addresses = alerts.split_addresses(text)
    if len(addresses) > alerts.MAX_ADDRESSES:
        raise Invalid(f"An alert target may have at most {alerts.MAX_ADDRESSES} email addresses.")
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError as wrong:
            raise Invalid(f"{address[:80]!r} is not a valid email address.") from wrong


def delete_target(target_id: int, by: str) -> None:
    """Delete a target. Its alerts are kept and no longer sent to it."""
    with transaction.atomic():
        row = find_target(target_id)
        _record_change(row, "delete", by)
        row.delete()


def find_target(target_id: int) -> AlertTarget:
    row = AlertTarget.objects.filter(pk=min(target_id, 2**62)).first()
    if row is None:
        raise NotFound(f"There is no alert target {target_id}.")
    return row


def target_settings(row: AlertTarget) -> dict[str, str]:
    """Return all settings of a target, decrypted.

    Raises:
        DecryptionFailed: when no key of this server decrypts the secrets.
    """
    return {**row.settings, **json.loads(encryption.decrypt(row.seal_name, row.sealed))}


def send_test(target_id: int, by: str) -> AlertFiring:
    """Send a test to a target through the outbox, once. The returned row gets its answer."""
    now = clock.now()
    with transaction.atomic():
        row = find_target(target_id)
        notice = alerts.AlertNotice(
            alerts.TEST,
            row.name,
            f"This is a test of the alert target {row.name}, sent by {by}.",
            now,
            f"test {row.seal_name}",
        )
        firing = send_notice(row, notice, None)
        _record_change(row, "test", by)
    return firing


def send_notice(target: AlertTarget, notice: alerts.AlertNotice, alert: Alert | None) -> AlertFiring:
    """Write a notification and its outbox message. It names the target, so that the outbox has no secrets."""
    firing = AlertFiring.objects.create(
        alert=alert, target=target, recipient=target.name, at=notice.at, sentence=notice.sentence, channel=target.kind
    )
    facts = {"sink": ALERT, "id": secrets.token_hex(16), "target": target.pk, "ring": firing.pk}
    # A test does not wait for notifications that the target refuses.
    to = f"alert target {target.pk}{' test' if notice.event == alerts.TEST else ''}"
    send(PUBLISH, notice.at, to=to, facts={**facts, "payload": notice.document()})
    return firing


def is_obsolete(notice: alerts.AlertNotice) -> bool:
    """Return True if the alert has cleared since the notice of its firing, so that it would open an incident again."""
    opened = Alert.objects.filter(pk=notice.alert or 0).values_list("incident_at", flat=True).first()
    return opened is None or opened > notice.at


def reencrypt_targets() -> int:
    """Encrypt the secrets of every target with the newest key. Returns how many were encrypted with another one."""
    count = 0
    for row in AlertTarget.objects.order_by("pk"):
        if not encryption.is_current(row.sealed):
            again = encryption.encrypt(row.seal_name, encryption.decrypt(row.seal_name, row.sealed))
            count += AlertTarget.objects.filter(pk=row.pk, sealed=row.sealed).update(sealed=again)
    return count


def _record_change(row: AlertTarget, action: str, by: str) -> None:
    audit.record("alert target", str(row.pk), action, by, facts={"name": row.name, "kind": row.kind})
