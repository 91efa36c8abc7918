"""One queue in detail, positions in it, and what its delayed attempts wait for."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Count, Min, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from ...access.permissions import TASK_DEF
from ...access.visibility import sees_all_runs, visible, visible_names
from ...definitions.models import TaskDefinition
from ...runs.models import Attempt, AttemptQuerySet
from ...utils.formatting import MINUTE, format_decimal, format_duration
from ..gates import GateFacts, brief_cause_of_delay
from ..models import MinuteCount, Poller, QueueHold
from .queue_states import QUIET_AFTER_MS, QueueState, list_pollers
from .shares import QueueShare, claim_order, count_ahead, is_older, list_queue_shares
from .waiting import (
    LimitHolder,
    cap_rate,
    earliest_dispatch_ms,
    estimate_dispatch_ms,
    facts_of_attempts,
    gate_facts,
    is_queued,
    limit_holders,
    limits_from,
)

WINDOW_MS = 5 * MINUTE
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Position of an attempt among those that can be claimed now.

    `ahead`: attempts before it, counted up to MAX_COUNTED. `rate`: claims per second, None without recent claims.
    `earliest_ms`: how long its gates keep it waiting, None if that is unknown. `eta_ms`: the estimated remaining wait,
    None if it is unknown.
    """

    ahead: int
    rate: float | None
    earliest_ms: int | None
    eta_ms: int | None

    @property
    def is_capped(self) -> bool:
        return self.ahead >= MAX_COUNTED

    @property
    def place(self) -> str:
        return f"{MAX_COUNTED:,}+" if self.is_capped else f"{self.ahead + 1:,}"

    @property
    def sentence(self) -> str:
        parts = [_("Position %(place)s") % {"place": self.place}]
        if self.rate is not None:
            parts.append(format_rate(self.rate))
        elif not self.earliest_ms:
            parts.append(_("no dispatches in the last five minutes"))
        if self.eta_ms is not None:
            parts.append(_("ETA ~%(span)s") % {"span": format_duration(self.eta_ms)})
        elif self.earliest_ms:
            parts.append(_("no earlier than in %(span)s") % {"span": format_duration(self.earliest_ms)})
        return " · ".join(parts)


def queue_position(
    attempt: Attempt, now: int, facts: GateFacts | None = None, *, is_polled: bool = True
) -> QueuePosition | None:
    """Return the position of a pending attempt, or None if it is not in a queue.

    `facts`: of the attempt, if they have been loaded. `is_polled`: False if no worker would claim it now.
    """
    if not is_queued(attempt):
        return None
    facts = facts or gate_facts(attempt, now)
    if attempt.fairness_key:
        ahead = count_ahead(attempt, now)
    else:
        ahead = attempts_ahead(attempt, now).order_by()[:MAX_COUNTED].count()
    rate = cap_rate(queue_rate(attempt.queue, now), facts)
    eta = estimate_dispatch_ms(ahead + 1, rate, facts) if is_polled else None
    return QueuePosition(ahead, rate, earliest_dispatch_ms(ahead + 1, facts), eta)


def attempts_ahead(attempt: Attempt, now: int) -> AttemptQuerySet:
    """Return the attempts that workers claim before one without a fairness key, in claim order.

    Attempts with keys are in the order in which they became due: how many come first does not depend on their turns.
    """
    visible_at = max(attempt.visible_at, now)
    same = Q(priority=attempt.priority)
    earlier = Q(priority__gt=attempt.priority, visible_at__lte=visible_at)
    earlier |= same & is_older(attempt.visible_at, attempt.pk)
    rows = Attempt.objects.pending(attempt.queue).filter(earlier)
    return rows.order_by("-priority", "visible_at", "id")


def queue_rate(queue: str, now: int) -> float | None:
    """Return the recent dispatch rate of a queue in attempts per second, or None if it dispatched nothing."""
    return queue_rates([queue], now).get(queue)


def queue_rates(queues: list[str], now: int) -> dict[str, float]:
    """Return the recent dispatch rates of several queues, per second, without those that were inactive.

    The rate covers the time since the first count, at least one minute: an empty
    queue before that does not reduce the rate.
    """
    since = now - WINDOW_MS
    since -= since % MINUTE
    rows = MinuteCount.objects.filter(kind=MinuteCount.QUEUE, name__in=queues, at__gte=since, started__gt=0)
    counted = rows.order_by().values_list("name").annotate(Sum("started"), Min("at"))
    return {name: count * 1000 / max(now - first_at, MINUTE) for name, count, first_at in counted}


def format_rate(rate: float, largest: float = 0) -> str:
    """Format a rate per second, minute or hour: the smallest unit in which it is at least 1.

    `largest`: the largest rate of its column, which decides the unit of all.
    """
    largest = max(rate, largest)
    if largest >= 1:
        return _("%(rate)s/s") % {"rate": _format_small(rate)}
    if largest * 60 >= 1:
        return _("%(rate)s/min") % {"rate": _format_small(rate * 60)}
    return _("%(rate)s/h") % {"rate": _format_small(rate * 3600)}


def _format_small(number: float) -> str:
    """Return a number with one decimal. One that would be rounded to 0 is given as smaller than 0.1."""
    return format_decimal(number) if number >= LEAST_SHOWN else f"< {format_decimal(LEAST_SHOWN)}"


LEAST_SHOWN = 0.1
MAX_WAITING, MAX_RUNNING, MAX_POLLERS, MAX_SHARES = 50, 50, 50, 50
MAX_PLACED = 1_000
"""The first attempts of a queue among which those are listed that an actor with grants may see."""


def may_see_queue(name: str) -> bool:
    """Return True if the current actor may see a queue: it sees all runs, or the task type of the queue."""
    return sees_all_runs() or bool(visible_names(TASK_DEF, [name.rpartition(":")[2]]))


def visible_queues(queues: Iterable[QueueState]) -> list[QueueState]:
    """Return the queues that the current actor may see."""
    return [queue for queue in queues if may_see_queue(queue.name)]


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
    """Details of one queue. `drains_in_ms`: the estimated time until it is empty, None if that is unknown.

    `delays`: in a few words why delayed attempts wait, with their number, among the first of them. `shares`: the first
    fairness keys.
    """

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
    delays: tuple[tuple[str, int], ...] = ()
    shares: list[QueueShare] = field(default_factory=list)


def queue_detail(name: str, now: int) -> QueueDetail:
    """Return the current details of a queue, with those of its attempts that the actor may see."""
    pending, leased, speed = Attempt.objects.pending(name), Attempt.objects.leased(name), queue_rate(name, now)
    counted = pending.aggregate(
        ready=Count("pk", filter=Q(visible_at__lte=now)),
        delayed=Count("pk", filter=Q(visible_at__gt=now)),
        keyed=Count("pk", filter=~Q(fairness_key="") & Q(visible_at__lte=now)),
    )
    ready = _without_payloads(pending).filter(visible_at__lte=now)
    waiting = _first_shared(ready, name, now) if counted["keyed"] else _first_waiting(ready)
    running = list(visible(_without_payloads(leased)).order_by("claimed_at", "id")[:MAX_RUNNING])
    hold = QueueHold.objects.filter(pk=name, until_at__gt=now).first()
    sample = waiting[0][1] if waiting else running[0] if running else None
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
            for place, each in waiting
        ],
        running,
        len(running) if sees_all_runs() and len(running) < MAX_RUNNING else leased.count(),
        pollers[:MAX_POLLERS],
        _limits(sample, facts) if sample and facts else [],
        definition,
        drains_in_ms,
        _count_delays(pending, now) if counted["delayed"] else (),
        list_queue_shares(name, now, MAX_SHARES) if counted["keyed"] and sees_all_runs() else [],
    )


def _count_delays(pending: AttemptQuerySet, now: int) -> tuple[tuple[str, int], ...]:
    """Return why the first delayed attempts that the actor may see wait, the most frequent reason first."""
    rows = _without_payloads(pending).filter(visible_at__gt=now).order_by("-priority", "visible_at", "id")
    delayed = list(visible(rows)[:MAX_WAITING])
    facts = facts_of_attempts(delayed, now) if delayed else {}
    counts = Counter(brief_cause_of_delay(facts[each.pk]) or _("due later") for each in delayed)
    return tuple(counts.most_common())


def _first_waiting(ready: QuerySet[Attempt]) -> list[tuple[int, Attempt]]:
    """Return the first attempts of a queue that the actor may see, with their places among all."""
    ready = ready.order_by("-priority", "visible_at", "id")
    if sees_all_runs():
        return list(enumerate(ready[:MAX_WAITING], 1))
    places = {id: place for place, id in enumerate(ready.values_list("pk", flat=True)[:MAX_PLACED], 1)}
    return [(places[each.pk], each) for each in visible(ready.filter(pk__in=places))[:MAX_WAITING]]


def _first_shared(ready: QuerySet[Attempt], queue: str, now: int) -> list[tuple[int, Attempt]]:
    """Return the first attempts of a queue with fairness keys that the actor may see, with their places among all."""
    most = MAX_WAITING if sees_all_runs() else MAX_PLACED
    places = {id: place for place, id in enumerate(claim_order(queue, now, most), 1)}
    found = sorted(visible(ready.filter(pk__in=places)), key=lambda attempt: places[attempt.pk])
    return [(places[each.pk], each) for each in found[:MAX_WAITING]]


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
    return now - poller.polled_at < QUIET_AFTER_MS
