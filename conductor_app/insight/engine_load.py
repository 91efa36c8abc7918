"""How much waits, for how long, and whether the sweeps keep up: what a monitoring system asks every few seconds."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Min

from ..models import Attempt, Message, SweepPass


@dataclass(frozen=True, slots=True)
class WaitingLoad:
    """So many things wait; since when the first of them could have been handed out."""

    count: int = 0
    since: int | None = None

    def age_seconds(self, now: int) -> float:
        return max(now - self.since, 0) / 1000 if self.since is not None else 0.0

    def __add__(self, other: "WaitingLoad") -> "WaitingLoad":
        moments = [moment for moment in (self.since, other.since) if moment is not None]
        return WaitingLoad(self.count + other.count, min(moments, default=None))


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """All of it, at one moment."""

    queues: dict[str, WaitingLoad]
    outbox: WaitingLoad
    sweeps: Sequence[SweepPass]


def measure_load(most_queues: int, others: str) -> EngineLoad:
    """The queues that hold most, all further ones as one; messages on their way; the sweeps' last passes."""
    message = Message.objects.aggregate(count=Count("pk"), since=Min("sent_at"))
    return EngineLoad(
        _queue_load(most_queues, others), WaitingLoad(**message), list(SweepPass.objects.order_by("name"))
    )


def waiting_by_queue():
    """One pass over the index from which work is handed out: it holds all that is read."""
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
