"""Notices on their way to an exchange: taken in order task by task, deleted when the exchange has them."""

from collections.abc import Sequence

from django.db import transaction

from ... import clock
from ...models import PulseMessage
from ...store import pulse_messages

HELD_MS = 60_000
"""How long a notice is its taker's. After that another one takes it."""
SLOWEST_RETRY_MS = 60_000


def take_due(count: int) -> list[PulseMessage]:
    """Notices that are due, of each task the first only; they are this caller's for a while."""
    now = clock.now()
    with transaction.atomic():
        ids = pulse_messages.claim_due(now, now + HELD_MS, count)
    return list(PulseMessage.objects.filter(pk__in=ids).order_by("id"))


def mark_delivered(told: Sequence[PulseMessage]) -> None:
    """The exchange has them."""
    PulseMessage.objects.filter(pk__in=[notice.pk for notice in told]).delete()


def mark_failed(untold: Sequence[PulseMessage], why: str) -> None:
    """Try again after a pause that doubles; what follows of the same tasks waits with them."""
    for notice in untold:
        due_at = clock.now() + min(1000 * 2 ** min(notice.tries, 10), SLOWEST_RETRY_MS)
        PulseMessage.objects.filter(pk=notice.pk).update(tries=notice.tries + 1, due_at=due_at, error=why[:2000])
