"""Load of the engine for monitoring: queue lengths, waiting times, outbox and sweeps."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Min, Q

from ...core.snapshot import NEVER
from ...models import Attempt, Message, SweepPass
from .undelivered_messages import RECEIVER_KINDS, receiver_kind


@dataclass(frozen=True, slots=True)
class WaitingLoad:
    """Number of waiting items, and since when the oldest of them has been due."""

    count: int = 0
    since: int | None = None

    def age_seconds(self, now: int) -> float:
        return max(now - self.since, 0) / 1000 if self.since is not None else 0.0

    def __add__(self, other: "WaitingLoad") -> "WaitingLoad":
        moments = [moment for moment in (self.since, other.since) if moment is not None]
        return WaitingLoad(self.count + other.count, min(moments, default=None))


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """Load of queues, outbox and sweeps at one time. `undelivered`: messages by the kind of their receivers."""

    queues: dict[str, WaitingLoad]
    outbox: WaitingLoad
    undelivered: dict[str, int]
    sweeps: Sequence[SweepPass]


def measure_load(max_queues: int, others: str) -> EngineLoad:
    """Return the current load. Beyond the `max_queues` longest queues, all others count under the name `others`."""
    outbox, undelivered = _outbox_load()
    return EngineLoad(_queue_load(max_queues, others), outbox, undelivered, list(SweepPass.objects.order_by("name")))


def _outbox_load() -> tuple[WaitingLoad, dict[str, int]]:
    """Return the messages on their way, and the number of undelivered ones by the kind of their receivers."""
    is_undelivered = Q(due_at=NEVER)
    rows = (
        Message.objects.order_by()
        .values_list("subject")
        .annotate(
            count=Count("pk", filter=~is_undelivered),
            since=Min("sent_at", filter=~is_undelivered),
            undelivered=Count("pk", filter=is_undelivered),
        )
    )
    outbox, undelivered = WaitingLoad(), dict.fromkeys(RECEIVER_KINDS.values(), 0)
    for subject, count, since, failed in rows:
        outbox += WaitingLoad(count, since)
        kind = receiver_kind(subject) or "other"
        undelivered[kind] = undelivered.get(kind, 0) + failed
    return outbox, undelivered


def waiting_by_queue():
    """Return pending count and earliest due time of each queue. Reads only the index that claims use."""
    return (
        Attempt.objects.pending()
        .values_list("queue")
        .annotate(count=Count("pk"), since=Min("visible_at"))
        .order_by("-count", "queue")
    )


def _queue_load(most: int, others: str) -> dict[str, WaitingLoad]:
    found: dict[str, WaitingLoad] = {}
    for queue, count, since in waiting_by_queue():
        name = queue if len(found) < most else others
        found[name] = found.get(name, WaitingLoad()) + WaitingLoad(count, since)
    return found
