"""Commands on saved views and alerts, and the check that runs once a minute. Alerts are sent through the outbox."""

import secrets
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from ... import clock
from ...core.alerts import ALERT_KINDS, DAY_MINUTES, MINUTE_MS, SHARE, QuietHours
from ...core.errors import Conflict, Invalid, NotFound
from ...insight.bulk import selections
from ...insight.failures.alerts import measure_alert, newest_failure, rule_of
from ...models import Alert, AlertFiring, SavedView
from ...models.outbox import ALERT, PUBLISH
from ...store import outbox_messages
from .. import audit
from ..sweep_items import handle_each

MAX_VIEWS = 200
MAX_MINUTES = 7 * 24 * 60
RETENTION_MS = 90 * 86_400_000


def save_view(
    name: str, selection: Mapping[str, Any], by: str, is_shared: bool = False, is_tile: bool = False
) -> SavedView:
    """Save a selection of runs as a view of its owner. A view of the same name is replaced.

    Raises:
        Invalid: when the name or the selection is invalid.
        Conflict: when the owner has too many views.
    """
    name = name.strip()
    if not name or len(name) > 120 or "\0" in name:
        raise Invalid(f"The name of a view must have 1 to 120 characters (got {name[:130]!r}).")
    known = selections.clean_selection(selection)
    selections.selected_runs(known).order_by()[:1].exists()
    with transaction.atomic():
        if SavedView.objects.filter(owner=by).exclude(name=name).count() >= MAX_VIEWS:
            raise Conflict(f"{by} already has {MAX_VIEWS} views. Delete one first.")
        values = {"selection": known, "is_shared": is_shared, "is_tile": is_tile, "created_at": clock.now()}
        view, _ = SavedView.objects.update_or_create(owner=by[:255], name=name, defaults=values)
        _record_change("view", view.pk, by, "save", {"name": name, "selection": known})
    return view


def remove_view(view_id: int, by: str) -> None:
    """Delete a view of the caller, with its alerts.

    Raises:
        NotFound: when the caller owns no view with this id.
    """
    with transaction.atomic():
        if not SavedView.objects.filter(pk=view_id, owner=by).delete()[0]:
            raise NotFound(f"You have no view with the id {view_id}.")
        _record_change("view", view_id, by, "remove", {})


def save_alert(
    view: SavedView,
    kind: str,
    threshold: int,
    window: int,
    repeat: int,
    by: str,
    *,
    webhook: str = "",
    mail: str = "",
    quiet: QuietHours | None = None,
) -> Alert:
    """Create an alert that fires when a view meets a condition. `window` and `repeat` are in minutes.

    Raises:
        Invalid: when a value is out of its range, or an address is invalid or missing.
    """
    if kind not in ALERT_KINDS:
        raise Invalid(f"Unknown kind of alert {kind!r}. Use one of: {', '.join(ALERT_KINDS)}.")
    if not 1 <= threshold <= (most := 100 if kind == SHARE else 10**6):
        raise Invalid(f"The threshold must be 1 to {most:,} (got {threshold}).")
    if not (1 <= window <= MAX_MINUTES and 1 <= repeat <= MAX_MINUTES):
        raise Invalid(f"The window and the pause must be 1 to {MAX_MINUTES} minutes (got {window} and {repeat}).")
    if quiet is not None and not (0 <= quiet.begins < DAY_MINUTES and 0 <= quiet.ends < DAY_MINUTES):
        raise Invalid("Quiet hours must be two times of day, such as 22:00 and 07:30.")
    _check_addresses(webhook, mail)
    now = clock.now()
    with transaction.atomic():
        alert = Alert.objects.create(
            view=view, kind=kind, threshold=threshold, window_minutes=window, repeat_minutes=repeat,
            webhook=webhook, mail=mail, by=by[:255], next_at=now,
            **({"quiet_from": quiet.begins, "quiet_until": quiet.ends, "zone": quiet.zone} if quiet else {}),
        )  # fmt: skip
        _record_change("alert", alert.pk, by, "save", {"view": view.name, "kind": kind, "threshold": threshold})
    return alert


def _check_addresses(webhook: str, mail: str) -> None:
    if not webhook and not mail:
        raise Invalid("Enter a webhook URL or an email address for the alert.")
    if webhook and (not webhook.startswith(("http://", "https://")) or len(webhook) > 1000 or "\0" in webhook):
        raise Invalid(f"The webhook URL must start with https:// or http:// (got {webhook[:80]!r}).")
    try:
        if mail:
            validate_email(mail)
    except ValidationError as wrong:
        raise Invalid(f"{mail[:80]!r} is not a valid email address.") from wrong


def remove_alert(alert_id: int, by: str) -> None:
    """Delete an alert.

    Raises:
        NotFound: when there is no alert with this id.
    """
    with transaction.atomic():
        if not Alert.objects.filter(pk=alert_id).delete()[0]:
            raise NotFound(f"There is no alert {alert_id}.")
        _record_change("alert", alert_id, by, "remove", {})


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
    if rule.is_quiet(now) or (alert.last_fired_at is not None and now - alert.last_fired_at < rule.repeat_ms):
        return
    hits, total = measure_alert(alert, now)
    if rule.is_met(hits, total):
        sentence, cause = rule.sentence(hits, total), newest_failure(alert, now)
        with transaction.atomic():
            Alert.objects.filter(pk=alert_id).update(last_fired_at=now)
            _send_alert(alert, f"{sentence}. Latest failure: {cause}" if cause else sentence, now)


def _send_alert(alert: Alert, sentence: str, now: int) -> None:
    """Create a firing and an outbox message for each channel of the alert."""
    for channel, to in (("webhook", alert.webhook), ("mail", alert.mail)):
        if to:
            firing = AlertFiring.objects.create(
                alert=alert, at=now, sentence=f"{alert.view.name}: {sentence}", channel=channel
            )
            payload = {"view": alert.view.name, "sentence": firing.sentence, "at": now, "alert": alert.pk}
            facts = {"sink": ALERT, "id": secrets.token_hex(16), "channel": channel, "to": to, "ring": firing.pk}
            to_sink = f"alert {alert.pk} {channel}"
            outbox_messages.send(PUBLISH, now, to=to_sink, facts={**facts, "payload": payload})


def _record_change(kind: str, id: int, by: str, action: str, facts: Mapping[str, Any]) -> None:
    audit.record(kind, str(id), action, by, facts=facts)
