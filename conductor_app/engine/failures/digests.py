"""Digests by email: subscriptions of users, and the sweep that sends them through the outbox."""

import secrets
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from ... import clock
from ...core.errors import Invalid
from ...insight.durations import DAY
from ...insight.failures.digest import collect_digest
from ...insight.failures.digest_text import digest_body, digest_subject
from ...models import DigestSubscription
from ...models.outbox import ALERT, PUBLISH
from ...store import outbox_messages
from ..sweep_items import handle_each

HOUR_OF_DAY = 7
"""The hour in the user's time zone at which digests are sent, weekly ones on Monday."""
PERMISSION = "conductor.view_run"


def subscribe(user: User, period: str, zone: str) -> None:
    """Send a digest to the user every day or every week. The same period keeps the time of the next one.

    Raises:
        Invalid: when the period is unknown, or the user has no email address.
    """
    if period not in DigestSubscription.PERIODS:
        raise Invalid(f"Unknown period {period[:20]!r}. Use one of: {', '.join(DigestSubscription.PERIODS)}.")
    if not user.email:
        raise Invalid("Your account has no email address. An administrator can add it.")
    values = {"period": period, "zone": zone}
    if not DigestSubscription.objects.filter(pk=user.pk, **values).exists():
        next_at = _next_time(period, zone, clock.now())
        DigestSubscription.objects.update_or_create(pk=user.pk, defaults={**values, "next_at": next_at})


def unsubscribe(user: User) -> None:
    """Send no digests to the user."""
    DigestSubscription.objects.filter(pk=user.pk).delete()


def subscribed_period(user: User) -> str:
    """Return the period of the user's digests, or "" if there are none."""
    return DigestSubscription.objects.filter(pk=user.pk).values_list("period", flat=True).first() or ""


def send_due_digests(limit: int) -> int:
    """Send up to `limit` due digests and return their number."""
    due = DigestSubscription.objects.filter(next_at__lte=clock.now()).order_by("next_at")
    return handle_each(list(due.values_list("pk", flat=True)[:limit]), _send_digest)


def _send_digest(user_id: int) -> None:
    """Send a digest if there is something to report. The update of `next_at` lets one process send it."""
    now = clock.now()
    row = DigestSubscription.objects.select_related("user").filter(pk=user_id, next_at__lte=now).first()
    if row is None:
        return
    with transaction.atomic():
        next_at = _next_time(row.period, row.zone, now)
        if not DigestSubscription.objects.filter(pk=user_id, next_at=row.next_at).update(next_at=next_at):
            return
        if row.user.is_active and row.user.email and row.user.has_perm(PERMISSION):
            _write_message(row, now)


def _write_message(row: DigestSubscription, now: int) -> None:
    is_weekly = row.period == DigestSubscription.WEEKLY
    digest = collect_digest(now - DAY * (7 if is_weekly else 1), now)
    if digest.is_empty:
        return
    with timezone.override(ZoneInfo(row.zone)):
        payload = {"sentence": digest_subject(digest), "body": digest_body(digest, is_weekly, now), "at": now}
    facts = {"sink": ALERT, "id": secrets.token_hex(16), "to": row.user.email, "payload": payload}
    outbox_messages.send(PUBLISH, now, to=f"digest {row.pk}", facts=facts)


def _next_time(period: str, zone: str, now: int) -> int:
    local = datetime.fromtimestamp(now / 1000, UTC).astimezone(ZoneInfo(zone))
    at = local.replace(hour=HOUR_OF_DAY, minute=0, second=0, microsecond=0)
    while at <= local or (period == DigestSubscription.WEEKLY and at.weekday() != 0):
        at += timedelta(days=1)
    return round(at.timestamp() * 1000)
