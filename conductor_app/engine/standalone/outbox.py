"""Outbox of Pulse messages: claimed in order per task, and deleted when the exchange has received them."""

from collections.abc import Sequence

from django.db import transaction

from ... import clock
from ...models import PulseMessage
from ...store import pulse_messages

CLAIM_MS = 60_000
"""The period in which a claimed message belongs to its publisher. After it another one can claim the message."""
MAX_RETRY_DELAY_MS = 60_000


def take_due(count: int) -> list[PulseMessage]:
    """Claim up to `count` due messages for CLAIM_MS, of each task only the first. Returns them in order."""
    now = clock.now()
    with transaction.atomic():
        ids = pulse_messages.claim_due(now, now + CLAIM_MS, count)
    return list(PulseMessage.objects.filter(pk__in=ids).order_by("id"))


def mark_delivered(messages: Sequence[PulseMessage]) -> None:
    """Delete messages that the exchange has received."""
    pulse_messages.delete_messages([message.pk for message in messages])


def mark_failed(messages: Sequence[PulseMessage], why: str) -> None:
    """Schedule the next try of messages with exponential backoff. Later messages of the same tasks wait for them."""
    for message in messages:
        due_at = clock.now() + min(1000 * 2 ** min(message.tries, 10), MAX_RETRY_DELAY_MS)
        pulse_messages.schedule_retry(message.pk, message.tries + 1, due_at, why[:2000])
