"""Views and alerts: kept, looked at once a minute, and told through the outbox like all that leaves the server."""

import secrets
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from .. import clock
from ..core.alerts import ALERT_KINDS, DAY_MINUTES, MINUTE_MS, SHARE, QuietHours
from ..core.errors import Conflict, Invalid, NotFound
from ..insight import selections
from ..insight.alerts import measure_alert, rule_of
from ..models import Alert, AlertFiring, AuditEntry, Message, SavedView
from ..models.outbox import ALERT, PUBLISH
from .sweep_items import handle_each

MOST_VIEWS = 200
LONGEST_MINUTES = 7 * 24 * 60
KEPT_MS = 90 * 86_400_000


def save_view(
    name: str, selection: Mapping[str, Any], by: str, is_shared: bool = False, is_tile: bool = False
) -> SavedView:
    """Keep a selection under a name of its owner; the same name again replaces it. Raises Invalid."""
    name = name.strip()
    if not name or len(name) > 120 or "\0" in name:
        raise Invalid("A view has a name of 1 to 120 characters.")
    known = selections.clean_selection(selection)
    selections.selected_runs(known).order_by()[:1].exists()
    with transaction.atomic():
        if SavedView.objects.filter(owner=by).exclude(name=name).count() >= MOST_VIEWS:
            raise Conflict(f"{by} has {MOST_VIEWS} views already.")
        values = {"selection": known, "is_shared": is_shared, "is_tile": is_tile, "created_at": clock.now()}
        view, _ = SavedView.objects.update_or_create(owner=by[:255], name=name, defaults=values)
        _record_change("view", view.pk, by, "save", {"name": name, "selection": known})
    return view


def remove_view(view_id: int, by: str) -> None:
    """Forget a view of one's own, with its alerts. Raises NotFound."""
    with transaction.atomic():
        if not SavedView.objects.filter(pk=view_id, owner=by).delete()[0]:
            raise NotFound("There is no such view of yours.")
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
    """Ring when a view meets a condition; spans in minutes. Raises Invalid."""
    if kind not in ALERT_KINDS or not 1 <= threshold <= (100 if kind == SHARE else 10**6):
        raise Invalid(f"An alert counts from 1, and is one of: {', '.join(ALERT_KINDS)}.")
    if not (1 <= window <= LONGEST_MINUTES and 1 <= repeat <= LONGEST_MINUTES):
        raise Invalid("Windows and pauses last from one minute to seven days.")
    if quiet is not None and not (0 <= quiet.begins < DAY_MINUTES and 0 <= quiet.ends < DAY_MINUTES):
        raise Invalid("Quiet hours are two times of a day, such as 22:00 and 07:30.")
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
        raise Invalid("An alert tells somebody: give the address of a webhook, or of a mailbox.")
    if webhook and (not webhook.startswith(("http://", "https://")) or len(webhook) > 1000 or "\0" in webhook):
        raise Invalid("A webhook's address begins with https:// or http://.")
    try:
        if mail:
            validate_email(mail)
    except ValidationError as wrong:
        raise Invalid(f"{mail[:80]!r} is no address of a mailbox.") from wrong


def remove_alert(alert_id: int, by: str) -> None:
    """Ring no more. Raises NotFound."""
    with transaction.atomic():
        if not Alert.objects.filter(pk=alert_id).delete()[0]:
            raise NotFound(f"There is no alert {alert_id}.")
        _record_change("alert", alert_id, by, "remove", {})


def check_due_alerts(limit: int) -> int:
    """Look at the alerts that are due; returns how many."""
    now = clock.now()
    AlertFiring.objects.filter(at__lt=now - KEPT_MS).delete()
    due = Alert.objects.filter(next_at__lte=now).order_by("next_at").values_list("pk", flat=True)
    return handle_each(list(due[:limit]), _check_alert)


def _check_alert(alert_id: int) -> None:
    """Ring it if its condition is met; whoever looks first has this minute."""
    now = clock.now()
    if not Alert.objects.filter(pk=alert_id, next_at__lte=now).update(next_at=now + MINUTE_MS):
        return
    alert = Alert.objects.select_related("view").get(pk=alert_id)
    rule = rule_of(alert)
    if rule.is_quiet(now) or (alert.rang_at is not None and now - alert.rang_at < rule.repeat_ms):
        return
    hits, total = measure_alert(alert, now)
    if rule.is_met(hits, total):
        with transaction.atomic():
            Alert.objects.filter(pk=alert_id).update(rang_at=now)
            _send_alert(alert, rule.sentence(hits, total), now)


def _send_alert(alert: Alert, sentence: str, now: int) -> None:
    """A line of the log and a message for each who is told."""
    for channel, to in (("webhook", alert.webhook), ("mail", alert.mail)):
        if to:
            rung = AlertFiring.objects.create(
                alert=alert, at=now, sentence=f"{alert.view.name}: {sentence}", channel=channel
            )
            payload = {"view": alert.view.name, "sentence": rung.sentence, "at": now, "alert": alert.pk}
            facts = {"sink": ALERT, "id": secrets.token_hex(16), "channel": channel, "to": to, "ring": rung.pk}
            to_sink = f"alert {alert.pk} {channel}"
            Message.objects.create(
                to=to_sink, subject=PUBLISH, facts={**facts, "payload": payload}, sent_at=now, due_at=now
            )


def _record_change(kind: str, id: int, by: str, action: str, facts: Mapping[str, Any]) -> None:
    AuditEntry.objects.create(
        at=clock.now(), actor=by, action=action, object_type=kind, object_id=str(id), facts=dict(facts)
    )
