"""Verdicts on a pending attempt: each gate, polling workers, and whether the run is paused."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from ... import clock
from ...core.breakpoints import stops_of
from ...core.states import PAUSED
from ...models import Attempt, BudgetHold, QueueHold, Run, TaskDefinition
from ...models.gates import CONCURRENCY, COUNT_LEASED, COUNT_STARTS, GATES, GateFacts, stop_facts
from ..ai.budget_holds import hold_facts
from ..durations import format_duration
from ..runs.last_transition import last_transition
from .gate_sentences import GATE_TEXTS
from .queue_states import QUIET_AFTER_MS, QueuePolls, grouped_polls, polls_of

MAX_HOLDERS = 20
"""Maximum number of holders that a verdict lists."""


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


def explain_attempt(attempt_id: str) -> list[GateVerdict]:
    """Return the verdicts on an attempt by id. Empty if it is not pending."""
    attempt = Attempt.objects.defer_payloads().select_related("run").filter(pk=attempt_id).first()
    return verdicts_on(attempt, clock.now()) if attempt else []


def verdicts_on(attempt: Attempt, now: int, facts: GateFacts | None = None) -> list[GateVerdict]:
    """Return the verdicts on an attempt that was loaded with its run. Empty if it is not pending.

    `facts`: of the attempt, if they have been loaded.
    """
    if facts is None:
        return verdicts_on_attempts([attempt], now)[attempt.pk]
    if not is_queued(attempt):
        return []
    return [*gate_verdicts(attempt, facts), polling_verdict(attempt, now), run_pause_verdict(attempt)]


def verdicts_on_attempts(attempts: Sequence[Attempt], now: int) -> dict[str, list[GateVerdict]]:
    """Return the verdicts on attempts that were loaded with their run, by attempt id. Those of all take few queries."""
    found: dict[str, list[GateVerdict]] = {each.pk: [] for each in attempts}
    queued = [each for each in attempts if is_queued(each)]
    loaded = {each.pk: _registered_limits_and_polls(each, now) for each in queued}
    facts = facts_of_attempts(queued, now, {pk: limits for pk, (limits, _polls) in loaded.items()}) if queued else {}
    uses = _limit_uses(queued, facts)
    for each in queued:
        gates = _evaluate_gates(each, facts[each.pk], uses[each.pk])
        polled = polling_verdict(each, now, loaded[each.pk][1])
        found[each.pk] = [*gates, polled, run_pause_verdict(each)]
    return found


def is_queued(attempt: Attempt) -> bool:
    """Return True if the attempt waits in a queue."""
    return attempt.status == "PENDING" and bool(attempt.queue)


def closed_gates(verdicts: Iterable[GateVerdict]) -> list[GateVerdict]:
    """Return the verdicts that keep the attempt waiting."""
    return [verdict for verdict in verdicts if not verdict.is_open]


def gate_verdicts(attempt: Attempt, facts: GateFacts) -> list[GateVerdict]:
    """Evaluate each gate that a claim checks."""
    return _evaluate_gates(attempt, facts, _limit_uses([attempt], {attempt.pk: facts})[attempt.pk])


def _evaluate_gates(attempt: Attempt, facts: GateFacts, use: LimitUse) -> list[GateVerdict]:
    facts = replace(facts, start_times=use.starts) if use.starts else facts
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
    """Return what counts against the limit of a gate, longest holder first."""
    if gate == CONCURRENCY.name:
        return tuple(_limit_holder(*row) for row in _holders_of_name(attempt.name))
    if gate == "run_slot" and (run := attempt.run) is not None:
        found = Run.objects.open().filter(name=run.name, limit_key=run.limit_key, is_held=False)
        rows = found.exclude(limit_key="").order_by("created_at", "id").values_list("id", "created_at")[:MAX_HOLDERS]
        return tuple(LimitHolder(run_id, since=since) for run_id, since in rows)
    return ()


def _holders_of_name(name: str) -> QuerySet[Attempt, Any]:
    found = Attempt.objects.filter(name=name, status="LEASED").exclude(queue="").order_by("claimed_at", "id")
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
        **hold_facts(known.get("budget_until"), known.get("budget_facts")),
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
    budget = BudgetHold.objects.filter(pk=OuterRef("pk"))
    columns |= {f"budget_{part}": Subquery(budget.values(part)[:1]) for part in ("until", "facts")}
    columns |= more
    rows = Attempt.objects.filter(pk__in=[each.pk for each in attempts]).values("pk", **columns)
    found = {row["pk"]: row for row in rows}
    return {each.pk: _with_limits(each, found.get(each.pk) or dict.fromkeys(columns)) for each in attempts}


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
    if now - polled_at >= QUIET_AFTER_MS:
        return GateVerdict("polled", False, _("No worker has polled queue `%(queue)s` for %(span)s.") % facts)
    if polls.alive and polls.drained == polls.alive:
        return GateVerdict("polled", False, _("Only draining workers poll queue `%(queue)s`.") % facts)
    return GateVerdict("polled", True, _("Queue `%(queue)s` was polled %(span)s ago.") % facts)


def run_pause_verdict(attempt: Attempt) -> GateVerdict:
    """Return the verdict on the run. It is always open: a claim does not check whether the run is paused."""
    if attempt.run is not None and attempt.run.status == PAUSED:
        entry = last_transition(attempt.run_id, "pause")
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
