"""Outbox of events for other systems: the built-in workers claim messages, publish them, and report the results."""

from collections.abc import Sequence

from ...alerts.models import AlertFiring
from ...core.snapshot import NEVER
from ...db.database import transaction
from ...runs.models import Message
from ...runs.store.outbox import claim_to_publish, consume, delay_sink, update_messages
from ...utils import clock

CLAIM_MS = 120_000
"""The period in which a claimed message belongs to its worker. It exceeds the longest exchange with a sink."""
MAX_RETRY_DELAY_MS = 300_000
MAX_PAUSE_MS = 3_600_000
MAX_TRIES = 600
"""Tries of a message, about two days. After the last one it stays in the table for operators to see."""


def take_due(count: int) -> Sequence[Message]:
    """Claim up to `count` due messages for CLAIM_MS. Returns them, earliest first."""
    now = clock.now()
    with transaction.atomic():
        ids = claim_to_publish(now, now + CLAIM_MS, count)
    return list(Message.objects.filter(pk__in=ids).order_by("id"))


def mark_delivered(message: Message, answer: str = "") -> None:
    """Delete a message that the other system has received."""
    consume(message.pk)
    _log_alert_delivery(message, delivered_at=clock.now(), error="", answer=answer[:2000])


def drop(message: Message, why: str) -> None:
    """Delete a message that is not tried again, and log why."""
    consume(message.pk)
    _log_alert_delivery(message, tries=message.tries + 1, error=why[:2000])


def mark_failed(message: Message, why: str, pause_ms: int = 0) -> int:
    """Schedule the next try of a message with exponential backoff. Returns its time in milliseconds.

    `pause_ms`: the pause that the other system demands, which applies up to MAX_PAUSE_MS if it is longer.
    All due messages for the same sink are delayed too, because they would fail in the same way.
    """
    now, tries = clock.now(), message.tries + 1
    backoff = min(1000 * 2 ** min(message.tries, 20), MAX_RETRY_DELAY_MS)
    again_at = now + max(backoff, min(pause_ms, MAX_PAUSE_MS))
    due_at = NEVER if tries >= MAX_TRIES else again_at
    update_messages([message.pk], tries=tries, due_at=due_at, error=why[:2000])
    _log_alert_delivery(message, tries=tries, error=why[:2000])
    delay_sink(message.to, now, again_at)
    return again_at


def _log_alert_delivery(message: Message, **facts: object) -> None:
    """Save the result of a delivery on the firing of its alert, if the message belongs to one."""
    if firing := message.facts.get("ring"):
        AlertFiring.objects.filter(pk=firing).update(**facts)


def postpone(messages: Sequence[Message], due_at: int) -> None:
    """Return claimed messages to the outbox without a try. They become due at `due_at`."""
    update_messages((each.pk for each in messages), due_at=due_at)
