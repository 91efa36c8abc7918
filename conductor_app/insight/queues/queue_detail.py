"""Details of one queue: pending attempts in dispatch order, attempts in progress, pollers and limits."""

from dataclasses import dataclass, field

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _

from ...models import Attempt, Poller, QueueHold, TaskDefinition
from ...models.gates import GateFacts
from .dispatch_estimates import cap_rate, estimate_dispatch_ms
from .gate_verdicts import LimitHolder, gate_facts, limit_holders, limits_from
from .queue_position import queue_rate
from .queue_states import QUIET_AFTER_MS, list_pollers

MAX_WAITING, MAX_RUNNING, MAX_POLLERS = 50, 50, 50


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """One limit of the queue's task definition, with its usage and its holders."""

    sentence: str
    used: int
    allowed: int
    reopens_at: int = 0
    holders: tuple[LimitHolder, ...] = ()

    @property
    def is_reached(self) -> bool:
        return self.used >= self.allowed


@dataclass(frozen=True, slots=True)
class WaitingAttempt:
    """One pending attempt with its position. `eta_ms`: the estimated remaining wait, None if it is unknown."""

    attempt: Attempt
    place: int
    eta_ms: int | None


@dataclass(frozen=True, slots=True)
class QueueDetail:
    """Details of one queue. `drains_in_ms`: the estimated time until it is empty, None if that is unknown."""

    name: str
    hold: QueueHold | None
    rate: float | None
    pending: int
    delayed: int
    waiting: list[WaitingAttempt]
    running: list[Attempt]
    leased: int
    pollers: list[Poller]
    limits: list[QueueLimit] = field(default_factory=list)
    definition: TaskDefinition | None = None
    drains_in_ms: int | None = None


def queue_detail(name: str, now: int) -> QueueDetail:
    """Return the current details of a queue."""
    pending, leased, speed = Attempt.objects.pending(name), Attempt.objects.leased(name), queue_rate(name, now)
    counted = pending.aggregate(
        ready=Count("pk", filter=Q(visible_at__lte=now)), delayed=Count("pk", filter=Q(visible_at__gt=now))
    )
    ready = _without_payloads(pending).filter(visible_at__lte=now)
    waiting = list(ready.order_by("-priority", "visible_at", "id")[:MAX_WAITING])
    running = list(_without_payloads(leased).order_by("claimed_at", "id")[:MAX_RUNNING])
    hold = QueueHold.objects.filter(pk=name, until_at__gt=now).first()
    sample = waiting[0] if waiting else running[0] if running else None
    definition = TaskDefinition.objects.filter(name=sample.name if sample else name).first()
    facts = gate_facts(sample, now, limits_from(sample, definition, hold)) if sample else None
    pollers = list_pollers(name)
    is_polled = any(is_polling(poller, now) for poller in pollers)
    drains_in_ms = estimate_dispatch_ms(counted["ready"], speed, facts) if waiting and facts and is_polled else None
    return QueueDetail(
        name,
        hold,
        cap_rate(speed, facts) if facts else speed,
        counted["ready"],
        counted["delayed"],
        [
            WaitingAttempt(each, place, estimate_dispatch_ms(place, speed, facts) if facts and is_polled else None)
            for place, each in enumerate(waiting, 1)
        ],
        running,
        leased.count() if len(running) == MAX_RUNNING else len(running),
        pollers[:MAX_POLLERS],
        _limits(sample, facts) if sample and facts else [],
        definition,
        drains_in_ms,
    )


def _without_payloads(attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    """Load attempts with their tasks and runs, without payloads."""
    payloads = [f"run__{part}" for part in ("input", "output", "variables")]
    return attempts.select_related("task", "run").defer("input", "output", "task__step_state", *payloads)


def _limits(sample: Attempt, facts: GateFacts) -> list[QueueLimit]:
    """Return the limits that apply to the attempts of the queue."""
    found = []
    if facts.concurrent_limit:
        holders = limit_holders("concurrency", sample)
        found.append(
            QueueLimit(_("in progress (concurrentExecLimit)"), facts.leased, facts.concurrent_limit, 0, holders)
        )
    if facts.rate_count:
        sentence = _("starts per %(seconds)s s (rateLimitPerFrequency)") % {"seconds": facts.rate_seconds}
        found.append(QueueLimit(sentence, facts.starts, facts.rate_count, facts.rate_reopens_at))
    return found


def is_polling(poller: Poller, now: int) -> bool:
    """Return True if the worker has polled recently."""
    return now - poller.polled_at < QUIET_AFTER_MS
