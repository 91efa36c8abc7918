"""One queue: what waits in the order in which it is handed out, who works on what, and which limits hold it back."""

from dataclasses import dataclass, field

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _

from ..models import Attempt, MinuteCount, Poller, QueueHold, TaskDefinition
from .explain import Holder, facts_of, holders
from .flow import Hour, last_hour
from .position import rate
from .queues import QUIET_AFTER_MS, polls_by

MOST_WAITING, MOST_RUNNING, MOST_POLLERS = 50, 50, 50


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of the queue's task definition, how much of it is used, and by whom."""

    sentence: str
    used: int
    of: int
    reopens_at: int = 0
    holders: tuple[Holder, ...] = ()

    @property
    def is_reached(self) -> bool:
        return self.used >= self.of


@dataclass(frozen=True, slots=True)
class Waiting:
    """One attempt in its turn; `eta_ms`: None where the queue does not move."""

    attempt: Attempt
    place: int
    eta_ms: int | None


@dataclass(frozen=True, slots=True)
class QueueStory:
    """All that there is to say of one queue."""

    name: str
    hold: QueueHold | None
    hour: Hour
    rate: float | None
    pending: int
    later: int
    waiting: list[Waiting]
    running: list[Attempt]
    leased: int
    pollers: list[Poller]
    limits: list[Limit] = field(default_factory=list)
    definition: TaskDefinition | None = None


def queue_story(name: str, now: int) -> QueueStory:
    """The queue as it is now."""
    pending, leased, speed = Attempt.objects.pending(name), Attempt.objects.leased(name), rate(name, now)
    counted = pending.aggregate(
        ready=Count("pk", filter=Q(visible_at__lte=now)), later=Count("pk", filter=Q(visible_at__gt=now))
    )
    ready = _readable(pending).filter(visible_at__lte=now)
    waiting = list(ready.order_by("-priority", "visible_at", "id")[:MOST_WAITING])
    running = list(_readable(leased).order_by("claimed_at", "id")[:MOST_RUNNING])
    hold = QueueHold.objects.filter(pk=name, until_at__gt=now).first()
    sample = waiting[0] if waiting else running[0] if running else None
    definition = TaskDefinition.objects.filter(name=sample.name if sample else name).first()
    return QueueStory(
        name,
        hold,
        last_hour(MinuteCount.QUEUE, [name], now).get(name, Hour()),
        speed,
        counted["ready"],
        counted["later"],
        [Waiting(each, place, _eta(place, speed, hold)) for place, each in enumerate(waiting, 1)],
        running,
        leased.count() if len(running) == MOST_RUNNING else len(running),
        polls_by(name)[:MOST_POLLERS],
        _limits(sample, now) if sample is not None else [],
        definition,
    )


def _readable(attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    """With their tasks and runs, without any payload."""
    payloads = [f"run__{part}" for part in ("input", "output", "variables")]
    return attempts.select_related("task", "run").defer("input", "output", "task__step_state", *payloads)


def _eta(place: int, speed: float | None, hold: QueueHold | None) -> int | None:
    return round(place / speed * 1000) if speed and hold is None else None


def _limits(sample: Attempt, now: int) -> list[Limit]:
    """The limits that its attempts meet."""
    facts, found = facts_of(sample, now), []
    if facts.concurrent_limit:
        who = holders("concurrency", sample)
        found.append(
            Limit(_("worked on at a time (concurrentExecLimit)"), facts.leased, facts.concurrent_limit, 0, who)
        )
    if facts.rate_count:
        sentence = _("starts in %(seconds)s s (rateLimitPerFrequency)") % {"seconds": facts.rate_seconds}
        found.append(Limit(sentence, facts.starts, facts.rate_count, facts.rate_reopens_at))
    return found


def is_alive(poller: Poller, now: int) -> bool:
    """Whether it has polled lately."""
    return now - poller.polled_at < QUIET_AFTER_MS
