"""What other systems are told: taken from the outbox by the built-in workers, and closed when it was heard."""

from collections.abc import Sequence

from django.db import transaction

from .. import clock
from ..core.snapshot import NEVER
from ..models import AlertFiring, Message
from ..models.outbox import PUBLISH
from ..store import due_rows

HELD_MS = 120_000
"""How long a message is its taker's: longer than the longest exchange. After that another one takes it."""
SLOWEST_RETRY_MS = 300_000
MOST_TRIES = 600
"""How often a message is tried: about two days. After that it is kept for people to see, and tried no more."""


def take_due(count: int) -> Sequence[Message]:
    """Messages that are due, the earliest first; they are this caller's for a while."""
    now = clock.now()
    with transaction.atomic():
        ids = due_rows.claim_to_publish(now, now + HELD_MS, count)
    return list(Message.objects.filter(pk__in=ids).order_by("id"))


def mark_delivered(message: Message) -> None:
    """The other system has it."""
    Message.objects.filter(pk=message.pk).delete()
    _log_alert_delivery(message, heard_at=clock.now(), error="")


def mark_failed(message: Message, why: str) -> int:
    """Try again after a pause that doubles; the moment at which its sink may be tried again.

    What else waits for the same sink waits with it: it would only meet the same failure.
    """
    now, tries = clock.now(), message.tries + 1
    again_at = now + min(1000 * 2 ** min(message.tries, 20), SLOWEST_RETRY_MS)
    due_at = NEVER if tries >= MOST_TRIES else again_at
    Message.objects.filter(pk=message.pk).update(tries=tries, due_at=due_at, error=why[:2000])
    _log_alert_delivery(message, tries=tries, error=why[:2000])
    Message.objects.filter(subject=PUBLISH, to=message.to, due_at__lte=now).update(due_at=again_at)
    return again_at


def _log_alert_delivery(message: Message, **facts: object) -> None:
    """The log of an alert says what became of its telling."""
    if rung := message.facts.get("ring"):
        AlertFiring.objects.filter(pk=rung).update(**facts)


def hand_back(messages: Sequence[Message], due_at: int) -> None:
    """What was taken and not tried is anybody's again, from this moment on."""
    Message.objects.filter(pk__in=[each.pk for each in messages]).update(due_at=due_at)


def prune_dead_letters(before: int) -> int:
    """Forget what was given up and sent before a moment."""
    return Message.objects.filter(subject=PUBLISH, due_at=NEVER, sent_at__lt=before).delete()[0]
