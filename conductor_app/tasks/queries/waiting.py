"""Why attempts wait: queues with their pollers, estimates of dispatch, and a verdict on each gate."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from ...access.visibility import visible
from ...core.breakpoints import stops_of
from ...core.snapshot import NEVER
from ...core.states import PAUSED
from ...core.step_types.base import queue_name
from ...definitions.models import TaskDefinition
from ...runs.models import Attempt, Run
from ...runs.queries.recent import last_transition
from ...utils import clock
from ...utils.formatting import format_duration
from ..gates import BUDGET_HOLDS, CONCURRENCY, COUNT_LEASED, COUNT_STARTS, GATES, GateFacts, stop_facts
from ..models import Poller, QueueHold, WorkerHold
from .gate_sentences import GATE_TEXTS
from .shares import count_same_key_ahead, describe_same_key

MAX_COUNTED = 10_000
"""Attempts of a queue that are counted and searched for the oldest, in claim order."""
_PENDING_SQL = "FROM conductor_attempt a WHERE a.status = 'PENDING' AND NOT (a.queue = '')"
QUEUES_SQL = f"""
WITH RECURSIVE names (queue) AS (
    SELECT MIN(a.queue) {_PENDING_SQL}
    UNION ALL
    SELECT (SELECT MIN(a.queue) {_PENDING_SQL} AND a.queue > n.queue) FROM names n WHERE n.queue IS NOT NULL
)
SELECT 'pending' AS kind, n.queue, '' AS domain,
    (SELECT COUNT(*) FROM (SELECT 1 {_PENDING_SQL} AND a.queue = n.queue LIMIT %(limit)s) counted),
    (SELECT MIN(first.pending_since) FROM (
        SELECT a.pending_since, a.visible_at {_PENDING_SQL} AND a.queue = n.queue
        ORDER BY a.priority DESC, a.visible_at, a.id LIMIT %(limit)s
    ) first WHERE first.visible_at <= %(now)s),
    (SELECT COUNT(*) FROM (SELECT a.visible_at {_PENDING_SQL} AND a.queue = n.queue LIMIT %(limit)s) counted
     WHERE counted.visible_at > %(now)s)
FROM names n WHERE n.queue IS NOT NULL
UNION ALL
SELECT 'leased', a.queue, '', COUNT(*), 0, 0
FROM conductor_attempt a WHERE a.status = 'LEASED' AND NOT (a.queue = '') GROUP BY a.queue
UNION ALL
SELECT 'polled', p.task_type, p.domain, COUNT(*), MAX(p.polled_at), 0
FROM conductor_poller p GROUP BY p.task_type, p.domain
"""
"""Numbers and times of pending attempts, attempts in progress and polling workers.

It jumps from queue to queue in the claim index, so that it reads a bounded part of each queue.
"""
QUIET_AFTER_MS = 60_000
"""A queue without a poll for this long counts as unpolled. Long polls of clients are much shorter by default."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """Current state of one queue. `pending`: attempts that are due; `delayed`: those that become due later."""

    name: str
    pending: int = 0
    delayed: int = 0
    oldest_at: int | None = None
    leased: int = 0
    pollers: int = 0
    polled_at: int | None = None

    @property
    def has_more(self) -> bool:
        """True if more attempts are pending or delayed than were counted."""
        return self.pending + self.delayed > MAX_COUNTED

    @property
    def counted(self) -> int:
        return min(self.pending, MAX_COUNTED)

    def is_polled(self, now: int) -> bool:
        return self.polled_at is not None and now - self.polled_at < QUIET_AFTER_MS

    def is_neglected(self, now: int) -> bool:
        """Return True if attempts are due and no worker polls."""
        return bool(self.pending) and not self.is_polled(now)


def queues_without_workers(states: Iterable[QueueState], now: int) -> list[QueueState]:
    """Return the queues with due attempts that no worker polls and that are not paused. Runs at most one query."""
    unpolled = [queue for queue in states if queue.is_neglected(now)]
    holds = QueueHold.objects.filter(pk__in=[queue.name for queue in unpolled], until_at__gt=now)
    paused = set(holds.values_list("pk", flat=True)) if unpolled else set()
    return [queue for queue in unpolled if queue.name not in paused]


def limits_used(states: Collection[QueueState]) -> dict[str, tuple[int, int]]:
    """Return attempts in progress and the limit for each queue with a concurrent execution limit."""
    kinds = {queue.name: queue.name.rpartition(":")[2] for queue in states}
    rows = TaskDefinition.objects.filter(name__in=set(kinds.values()), concurrent_limit__gt=0)
    limits, used = dict(rows.values_list("name", "concurrent_limit")), Counter[str]()
    for queue in states:
        used[kinds[queue.name]] += queue.leased
    return {queue: (used[kind], limits[kind]) for queue, kind in kinds.items() if kind in limits}


def rate_limits(states: Collection[QueueState]) -> dict[str, float]:
    """Return the limit of starts per second for each queue whose task definition has one."""
    kinds = {queue.name: queue.name.rpartition(":")[2] for queue in states}
    rows = TaskDefinition.objects.filter(name__in=set(kinds.values()), rate_count__gt=0, rate_seconds__gt=0)
    limits = {name: count / seconds for name, count, seconds in rows.values_list("name", "rate_count", "rate_seconds")}
    return {queue: limits[kind] for queue, kind in kinds.items() if kind in limits}


def list_queues() -> list[QueueState]:
    """Return every queue that has attempts or was ever polled, the one with the oldest pending attempt first.

    Runs one query.
    """
    found: dict[str, dict[str, tuple[int, int | None, int]]] = {"pending": {}, "leased": {}, "polled": {}}
    with connection.cursor() as cursor:
        cursor.execute(QUEUES_SQL, {"limit": MAX_COUNTED + 1, "now": clock.now()})
        for kind, name, domain, *numbers in cursor.fetchall():
            found[kind][queue_name(name, domain)] = tuple(numbers)
    pending, leased, polls = found.values()
    none = (0, None, 0)
    states = [
        QueueState(name, waiting - delayed, delayed, oldest_at, leased.get(name, none)[0], pollers, polled_at)
        for name in {*pending, *leased, *polls}
        for waiting, oldest_at, delayed in (pending.get(name, none),)
        for pollers, polled_at, _zero in (polls.get(name, none),)
    ]
    return sorted(states, key=lambda queue: (queue.oldest_at is None, queue.oldest_at or 0, queue.name))


def count_blocked_runs(names: Sequence[str]) -> dict[str, int]:
    """Return how many runs wait in each of these queues, from MAX_COUNTED attempts."""
    waiting = Attempt.objects.pending().of_runs().filter(queue__in=names).values_list("queue", "run_id")
    return dict(Counter(queue for queue, _ in set(waiting.order_by()[:MAX_COUNTED])))


@dataclass(frozen=True, slots=True)
class QueuePolls:
    """Polls of one queue: time of the last poll, workers polling now, and how many of those are draining."""

    polled_at: int | None = None
    alive: int = 0
    drained: int = 0

    def are_recent(self, now: int) -> bool:
        return self.polled_at is not None and now - self.polled_at < QUIET_AFTER_MS

    @property
    def are_of_draining_workers(self) -> bool:
        return bool(self.alive) and self.drained == self.alive


def polls_of_queues(now: int) -> dict[str, QueuePolls]:
    """Return the polls of every queue. Runs one query."""
    return {
        queue_name(row["task_type"], row["domain"]): QueuePolls(row["at"], row["alive"], row["drained"])
        for row in _count_polls(Poller.objects.all(), now)
    }


def polls_of(queue: str, now: int) -> QueuePolls:
    row = grouped_polls(queue, now).first()
    return QueuePolls(row["at"], row["alive"], row["drained"]) if row else QueuePolls()


def grouped_polls(queue: str, now: int) -> QuerySet[Poller, Any]:
    """Return the columns of QueuePolls (`at`, `alive`, `drained`) for one queue: one row, or none."""
    return _count_polls(Poller.objects.filter(_possible_polls(queue)), now)


def _count_polls(rows: QuerySet[Poller], now: int) -> QuerySet[Poller, Any]:
    is_alive = Q(polled_at__gt=now - QUIET_AFTER_MS)
    is_drained = Exists(WorkerHold.objects.filter(worker=OuterRef("worker")))
    counted = rows.order_by().values("task_type", "domain").annotate(at=Max("polled_at"))
    counted = counted.annotate(alive=Count("pk", filter=is_alive), drained=Count("pk", filter=Q(is_alive, is_drained)))
    return counted.order_by("-at")


def list_pollers(queue: str) -> list[Poller]:
    """Return every worker that has polled the queue, most recent poll first."""
    rows = Poller.objects.filter(_possible_polls(queue)).order_by("-polled_at", "worker")
    return [row for row in rows if queue_name(row.task_type, row.domain) == queue]


def _possible_polls(queue: str) -> Q:
    """Select polls that may belong to this queue. A task type can itself contain a colon."""
    domain, _, task_type = queue.partition(":")
    return Q(task_type=queue, domain="") | Q(task_type=task_type, domain=domain)


def cap_rate(rate: float | None, facts: GateFacts) -> float | None:
    """Return the recent rate of a queue in attempts per second, but at most the rate that its limit allows.

    Shortly after the first starts, the recent rate is above the limit.
    """
    if rate is None or not _has_rate_limit(facts):
        return rate
    return min(rate, facts.rate_count / facts.rate_seconds)


def earliest_dispatch_ms(place: int, facts: GateFacts) -> int | None:
    """Return how long the gates keep the attempt at a place (from 1) waiting, in milliseconds from now.

    None if that is unknown, for example if its queue is paused without an end. The facts may be those of another
    attempt of the queue. A concurrency limit delays nothing here: when a worker reports is unknown.
    """
    if facts.is_run_held or facts.ends_at <= facts.now or facts.queue_held_until >= NEVER:
        return None
    return max(0, facts.visible_at - facts.now, facts.queue_held_until - facts.now, _rate_limit_delay_ms(place, facts))


def estimate_dispatch_ms(place: int, rate: float | None, facts: GateFacts) -> int | None:
    """Return when the attempt at a place will be dispatched, in milliseconds from now; None if that is unknown."""
    rate, earliest = cap_rate(rate, facts), earliest_dispatch_ms(place, facts)
    return None if not rate or earliest is None else max(round(place / rate * 1000), earliest)


def _has_rate_limit(facts: GateFacts) -> bool:
    return facts.rate_count > 0 and facts.rate_seconds > 0


def _rate_limit_delay_ms(place: int, facts: GateFacts) -> int:
    """Return when the rate limit lets the attempt at a place pass: each start frees its slot after one window."""
    if not _has_rate_limit(facts):
        return 0
    window = facts.rate_seconds * 1000
    windows, slot = divmod(place - 1, facts.rate_count)
    unused = facts.rate_count - len(facts.start_times)
    free_at = facts.start_times[slot - unused] + window if slot >= unused else facts.now
    return max(free_at - facts.now, 0) + windows * window


MAX_HOLDERS = 20


@dataclass(frozen=True, slots=True)
class LimitHolder:
    """An attempt in progress, or an active run, that counts against a limit."""

    run_id: str
    attempt_id: str = ""
    worker: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """One condition that an attempt must meet to be claimed, with its current state as a sentence."""

    gate: str
    is_open: bool
    sentence: str
    holders: tuple[LimitHolder, ...] = ()


@dataclass(frozen=True, slots=True)
class LimitUse:
    """What counts against the limits of an attempt: the starts of the rate limit, the holders of the other one."""

    starts: tuple[int, ...]
    holders: tuple[LimitHolder, ...]


def verdicts_on(attempt: Attempt, now: int, facts: GateFacts | None = None) -> list[GateVerdict]:
    """Return the verdicts on an attempt that was loaded with its run. Empty if it is not pending.

    `facts`: of the attempt, if they have been loaded.
    """
    if facts is None:
        return verdicts_on_attempts([attempt], now)[attempt.pk]
    if not is_queued(attempt):
        return []
    shares = share_verdicts(attempt, count_same_key_ahead(attempt) if attempt.fairness_key else 0)
    return [*gate_verdicts(attempt, facts), *shares, polling_verdict(attempt, now), run_pause_verdict(attempt)]


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """What decides whether a pending attempt can be claimed: its gates, and the polls of its queue.

    `holders`: what counts against its concurrency limit, if that is reached. `same_key_ahead`: the attempts before it
    that have the same fairness key.
    """

    gates: GateFacts
    polls: QueuePolls
    holders: tuple[LimitHolder, ...] = ()
    same_key_ahead: int = 0


def load_wait_facts(attempts: Sequence[Attempt], now: int) -> dict[str, WaitFacts]:
    """Return the facts of those attempts that wait in a queue, by attempt id. Those of all take few queries."""
    queued = [each for each in attempts if is_queued(each)]
    loaded = {each.pk: _registered_limits_and_polls(each, now) for each in queued}
    facts = facts_of_attempts(queued, now, {pk: limits for pk, (limits, _polls) in loaded.items()}) if queued else {}
    uses = _limit_uses(queued, facts)
    return {
        each.pk: WaitFacts(
            _with_starts(facts[each.pk], use),
            loaded[each.pk][1],
            use.holders,
            count_same_key_ahead(each) if each.fairness_key else 0,
        )
        for each in queued
        for use in (uses[each.pk],)
    }


def verdicts_of(attempt: Attempt, facts: WaitFacts | None, now: int) -> list[GateVerdict]:
    """Return the verdicts on an attempt that was loaded with its run. Empty if it is not pending."""
    if facts is None:
        return []
    gates = _evaluate_gates(attempt, facts.gates, LimitUse(facts.gates.start_times, facts.holders))
    shares = share_verdicts(attempt, facts.same_key_ahead)
    return [*gates, *shares, polling_verdict(attempt, now, facts.polls), run_pause_verdict(attempt)]


def verdicts_on_attempts(attempts: Sequence[Attempt], now: int) -> dict[str, list[GateVerdict]]:
    """Return the verdicts on attempts that were loaded with their run, by attempt id. Those of all take few queries."""
    facts = load_wait_facts(attempts, now)
    return {each.pk: verdicts_of(each, facts.get(each.pk), now) for each in attempts}


def is_queued(attempt: Attempt) -> bool:
    return attempt.status == "PENDING" and bool(attempt.queue)


def closed_gates(verdicts: Iterable[GateVerdict]) -> list[GateVerdict]:
    """Return the verdicts that keep the attempt waiting."""
    return [verdict for verdict in verdicts if not verdict.is_open]


def gate_verdicts(attempt: Attempt, facts: GateFacts) -> list[GateVerdict]:
    """Evaluate each gate that a claim checks."""
    return _evaluate_gates(attempt, facts, _limit_uses([attempt], {attempt.pk: facts})[attempt.pk])


def _with_starts(facts: GateFacts, use: LimitUse) -> GateFacts:
    return replace(facts, start_times=use.starts) if use.starts else facts


def _evaluate_gates(attempt: Attempt, facts: GateFacts, use: LimitUse) -> list[GateVerdict]:
    facts = _with_starts(facts, use)
    return [
        GateVerdict(gate.name, True, str(GATE_TEXTS[gate.name].open_sentence))
        if gate.lets_pass(facts)
        else GateVerdict(
            gate.name,
            False,
            GATE_TEXTS[gate.name].sentence(facts),
            use.holders if gate is CONCURRENCY else limit_holders(gate.name, attempt),
        )
        for gate in GATES
    ]


def _limit_uses(attempts: Sequence[Attempt], facts: Mapping[str, GateFacts]) -> dict[str, LimitUse]:
    """Return what counts against the limits of attempts, by attempt id. Runs one query, or none.

    Starts that have been loaded are not loaded again.
    """
    counted = [each for each in attempts if _has_counted_starts(facts[each.pk]) and not facts[each.pk].start_times]
    full = [each for each in attempts if not CONCURRENCY.lets_pass(facts[each.pk])]
    starts_and_holders = _load_parts(
        [_recent_starts(each.name, facts[each.pk]) for each in counted] + [_holders_of_name(each.name) for each in full]
    )
    starts = {each.pk: sorted(row[-1] for row in starts_and_holders.pop(0)) for each in counted}
    holders = {each.pk: [_limit_holder(*row) for row in starts_and_holders.pop(0)] for each in full}
    return {each.pk: LimitUse(tuple(starts.get(each.pk, ())), tuple(holders.get(each.pk, ()))) for each in attempts}


def _load_parts(parts: Sequence[QuerySet[Attempt, Any]]) -> list[list[Any]]:
    """Return the rows of several queries with the same columns. Runs one query, or none."""
    found: list[list[Any]] = [[] for _part in parts]
    if not parts:
        return found
    queries = [rows.query.sql_with_params() for rows in parts]
    union = " UNION ALL ".join(f"SELECT {n}, part.* FROM ({sql}) AS part" for n, (sql, _values) in enumerate(queries))
    with connection.cursor() as cursor:
        cursor.execute(union, [value for _sql, values in queries for value in values])
        rows = cursor.fetchall()
    for number, *row in rows:
        found[number].append(row)
    return found


def limit_holders(gate: str, attempt: Attempt) -> tuple[LimitHolder, ...]:
    """Return what the actor may see of what counts against the limit of a gate, longest holder first."""
    if gate == CONCURRENCY.name:
        return tuple(_limit_holder(*row) for row in _holders_of_name(attempt.name))
    if gate == "run_slot" and (run := attempt.run) is not None:
        found = visible(Run.objects.open()).filter(name=run.name, limit_key=run.limit_key, is_held=False)
        rows = found.exclude(limit_key="").order_by("created_at", "id").values_list("id", "created_at")[:MAX_HOLDERS]
        return tuple(LimitHolder(run_id, since=since) for run_id, since in rows)
    return ()


def _holders_of_name(name: str) -> QuerySet[Attempt, Any]:
    found = visible(Attempt.objects.filter(name=name, status="LEASED")).exclude(queue="").order_by("claimed_at", "id")
    return found.values_list("run_id", "id", "worker", "claimed_at")[:MAX_HOLDERS]


def _limit_holder(run_id: str | None, attempt_id: str, worker: str, since: int | None) -> LimitHolder:
    return LimitHolder(run_id or "", attempt_id, worker, since or 0)


def gate_facts(attempt: Attempt, now: int, known: dict[str, Any] | None = None) -> GateFacts:
    """Load the facts that the gates evaluate for one attempt. `known`: its limits, if they have been loaded."""
    facts = facts_of_attempts([attempt], now, {attempt.pk: known} if known else None)[attempt.pk]
    if not _has_counted_starts(facts):
        return facts
    return replace(facts, start_times=tuple(sorted(row[-1] for row in _recent_starts(attempt.name, facts))))


def _has_counted_starts(facts: GateFacts) -> bool:
    return facts.rate_count > 0 and facts.rate_seconds > 0 and facts.starts > 0


def facts_of_attempts(
    attempts: Collection[Attempt], now: int, known: dict[str, dict[str, Any]] | None = None
) -> dict[str, GateFacts]:
    """Load the facts of several attempts, by attempt id, without the times of starts that a rate limit counts.

    Runs two queries, or one if no attempt has a limit.
    """
    known = known or _registered_limits(attempts)
    limited = {(each.name, *(known[each.pk][limit] for limit in LIMITS)) for each in attempts}
    leased, starts = _count_used(limited, now)
    return {each.pk: _build_facts(each, known[each.pk], leased, starts, now) for each in attempts}


def _build_facts(
    attempt: Attempt, known: dict[str, Any], leased: dict[str, int], starts: dict[str, int], now: int
) -> GateFacts:
    concurrent_limit, rate_count, rate_seconds = (known[limit] for limit in LIMITS)
    return GateFacts(
        now=now,
        visible_at=attempt.visible_at,
        ends_at=attempt.ends_at,
        is_run_held=attempt.run is not None and attempt.run.is_held,
        **stop_facts(stops_of(attempt.run.debug or {}).get(attempt.pk) if attempt.run is not None else None),
        budget=source.read(known) if (source := BUDGET_HOLDS.value) is not None else None,
        concurrent_limit=concurrent_limit,
        leased=leased.get(attempt.name, 0),
        rate_count=rate_count,
        rate_seconds=rate_seconds,
        starts=starts.get(attempt.name, 0),
        queue_held_until=known["held_until_at"] or 0,
        queue_held_by=known["held_by"] or "",
        queue_held_because=known["held_reason"] or "",
    )


LIMITS = ("concurrent_limit", "rate_count", "rate_seconds")


def _registered_limits(attempts: Collection[Attempt], **more: Subquery) -> dict[str, dict[str, Any]]:
    """Return the limits of the current task definition, or else those of the attempt, and the holds that apply.

    `more`: further columns.
    """
    definition = TaskDefinition.objects.filter(name=OuterRef("name"))
    hold = QueueHold.objects.filter(pk=OuterRef("queue"))
    columns = {f"now_{limit}": Subquery(definition.values(limit)[:1]) for limit in LIMITS}
    columns |= {f"held_{part}": Subquery(hold.values(part)[:1]) for part in ("until_at", "by", "reason")}
    columns |= {**(source.columns if (source := BUDGET_HOLDS.value) is not None else {}), **more}
    rows = Attempt.objects.filter(pk__in=[each.pk for each in attempts]).values("pk", **columns)
    found: dict[str, dict[str, Any]] = {row["pk"]: dict(row) for row in rows}
    return {each.pk: _with_limits(each, found.get(each.pk, dict.fromkeys(columns))) for each in attempts}


def _registered_limits_and_polls(attempt: Attempt, now: int) -> tuple[dict[str, Any], QueuePolls]:
    """Return the limits of an attempt, and the polls of its queue. Runs one query."""
    polls = grouped_polls(attempt.queue, now)
    columns = {f"polls_{part}": Subquery(polls.values(part)[:1]) for part in ("at", "alive", "drained")}
    limits = _registered_limits([attempt], **columns)[attempt.pk]
    at, alive, drained = (limits.pop(column) for column in columns)
    return limits, QueuePolls(at, alive or 0, drained or 0)


def limits_from(attempt: Attempt, definition: TaskDefinition | None, hold: QueueHold | None) -> dict[str, Any]:
    """Return the limits of an attempt from the rows that apply to it."""
    row = {f"now_{limit}": getattr(definition, limit) if definition else None for limit in LIMITS}
    row |= {f"held_{part}": getattr(hold, part) if hold else None for part in ("until_at", "by", "reason")}
    return _with_limits(attempt, row)


def _with_limits(attempt: Attempt, row: dict[str, Any]) -> dict[str, Any]:
    now = {limit: row[f"now_{limit}"] for limit in LIMITS}
    return row | {limit: getattr(attempt, limit) if value is None else value for limit, value in now.items()}


def _count_used(limited: Collection[tuple[str, int, int, int]], now: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the used slots of the concurrency limits and of the rate limits, by name. Runs one query, or none."""
    used: tuple[dict[str, int], dict[str, int]] = {}, {}
    targets: list[tuple[dict[str, int], str]] = []
    queries: list[tuple[str, Sequence[Any]]] = []
    for name, concurrent_limit, rate_count, rate_seconds in limited:
        if concurrent_limit > 0:
            targets.append((used[0], name))
            queries.append(COUNT_LEASED.bind(name=name))
        if rate_count > 0 and rate_seconds > 0:
            targets.append((used[1], name))
            queries.append(COUNT_STARTS.bind(name=name, since=now - rate_seconds * 1000))
    if queries:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {', '.join(f'({sql})' for sql, values in queries)}",
                [value for sql, values in queries for value in values],
            )
            [row] = cursor.fetchall()
        for (counts, name), count in zip(targets, row, strict=True):
            counts[name] = int(count)
    return used


def _recent_starts(name: str, facts: GateFacts) -> QuerySet[Attempt, Any]:
    """Return the newest starts that count against a rate limit, at most as many as it allows, with their times."""
    window = facts.rate_seconds * 1000
    claimed = Attempt.objects.filter(name=name, rate_count__gt=0, claimed_at__gt=facts.now - window)
    return claimed.order_by("-claimed_at").values_list("run_id", "id", "worker", "claimed_at")[: facts.rate_count]


def polling_verdict(attempt: Attempt, now: int, polls: QueuePolls | None = None) -> GateVerdict:
    """Return the verdict on recent polls of the queue. `polls`: if they have been loaded."""
    polls = polls or polls_of(attempt.queue, now)
    polled_at, facts = polls.polled_at, {"queue": attempt.queue}
    if polled_at is None:
        return GateVerdict("polled", False, _("No worker has ever polled queue `%(queue)s`.") % facts)
    facts["span"] = format_duration(now - polled_at)
    if not polls.are_recent(now):
        return GateVerdict("polled", False, _("No worker has polled queue `%(queue)s` for %(span)s.") % facts)
    if polls.are_of_draining_workers:
        return GateVerdict("polled", False, _("Only draining workers poll queue `%(queue)s`.") % facts)
    return GateVerdict("polled", True, _("Queue `%(queue)s` was polled %(span)s ago.") % facts)


def share_verdicts(attempt: Attempt, ahead: int) -> list[GateVerdict]:
    """Return the verdict on the turn of an attempt within its fairness key; none for an attempt without a key."""
    if not attempt.fairness_key:
        return []
    return [GateVerdict("share", not ahead, describe_same_key(ahead, attempt.fairness_key))]


def run_pause_verdict(attempt: Attempt) -> GateVerdict:
    """Return the verdict on the run. It is always open: a claim does not check whether the run is paused."""
    if attempt.run is not None and attempt.run.status == PAUSED:
        entry = last_transition(attempt.run.pk, "pause")
        facts = {"by": entry.by if entry else "", "reason": entry.reason if entry else ""}
        return GateVerdict("run", True, _pause_sentence(facts) % facts)
    return GateVerdict("run", True, _("The run is not paused."))


def _pause_sentence(facts: dict[str, str]) -> str:
    if facts["by"] and facts["reason"]:
        return _(
            "The run is paused by %(by)s (%(reason)s): workers can still claim this task; later tasks wait for resume."
        )
    if facts["by"]:
        return _("The run is paused by %(by)s: workers can still claim this task; later tasks wait for resume.")
    return _("The run is paused: workers can still claim this task; later tasks wait for resume.")
