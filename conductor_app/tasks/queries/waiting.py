"""Why attempts wait: verdicts on the conditions of a claim, and from them one reason.

1. `tasks/gates.py:GATES` declares each gate once: its check on facts, its sentences, and its SQL for the claim or the
   statement that counts the used slots of a limit.
2. `load_wait_facts` loads the facts of attempts: limits, what counts against them, pauses, and the polls of the
   queue.
3. `verdicts_on` evaluates all gates of an attempt, and adds verdicts that are no gates: `share_verdicts` (its turn, if
   it has a fairness key), `polling_verdict` (whether workers poll) and `run_pause_verdict` (a pause stops no claim).
   The page "Why waiting", the panel of a task and the API show them all.
4. `wait_reason` chooses the one that runs, their lists, the API and MCP show, as a sentence and in a few words: the
   first closed gate, with the words of `_describe_delay` for a delay; then missing polls; then its turn. A step without
   a queue has the words of `ENGINE_WAITS`.

`explanations/cause.py:run_cause` puts the reason into the sentence of a run, which may also be held, begin later,
stand at a breakpoint, or wait for a message that was not delivered.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import visible
from ...core.breakpoints import stops_of
from ...core.failure_grouping import informative_line
from ...core.snapshot import FIRST_NUMBER, NEVER
from ...core.states import EXPIRED, FAILED, FAILED_FOR_GOOD, PAUSED
from ...core.step_types.forks import ExclusiveJoin, Join
from ...core.step_types.loops import DoWhile, ForEach, ForEachItem
from ...core.step_types.sub_workflows import SubWorkflow
from ...core.step_types.try_catch import TryCatch
from ...core.step_types.waiting import Human, PullWorkflowMessages, Wait, WaitForWebhook, Yield
from ...db.database import connection
from ...definitions.models import TaskDefinition
from ...runs.models import Attempt, Run
from ...runs.queries.recent import last_transition
from ...runs.timeline.tree import CONTAINER_STEP_TYPES
from ...utils import process_state
from ...utils.formatting import LazyText, format_duration, format_near_time
from ...utils.process_state import Wiring
from ..gates import (
    BUDGET_HOLDS,
    CONCURRENCY,
    COUNT_LEASED,
    COUNT_STARTS,
    GATES,
    GateFacts,
    brief_cause_of_delay,
    stop_facts,
)
from ..models import QueueHold
from .queue_states import QueuePolls, grouped_polls
from .shares import count_same_key_ahead, describe_same_key


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
    """A gate of an attempt, or another reason for a wait, with its current state as a sentence."""

    gate: str
    is_open: bool
    sentence: str
    holders: tuple[LimitHolder, ...] = ()


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
    starts, holders = _starts_and_holders(queued, facts)
    return {
        each.pk: WaitFacts(
            replace(facts[each.pk], start_times=starts.get(each.pk, ())),
            loaded[each.pk][1],
            holders.get(each.pk, ()),
            count_same_key_ahead(each) if each.fairness_key else 0,
        )
        for each in queued
    }


def verdicts_on(attempt: Attempt, now: int, facts: WaitFacts | None = None) -> list[GateVerdict]:
    """Return the verdicts on an attempt that was loaded with its run. Empty if it waits in no queue.

    `facts`: of the attempt, if they have been loaded.
    """
    facts = facts or load_wait_facts([attempt], now).get(attempt.pk)
    if facts is None:
        return []
    shares = share_verdicts(attempt, facts.same_key_ahead)
    return [
        *_gate_verdicts(attempt, facts),
        *shares,
        polling_verdict(attempt, now, facts.polls),
        run_pause_verdict(attempt),
    ]


def is_queued(attempt: Attempt) -> bool:
    return attempt.status == "PENDING" and bool(attempt.queue)


def closed_gates(verdicts: Iterable[GateVerdict]) -> list[GateVerdict]:
    """Return the verdicts that keep the attempt waiting."""
    return [verdict for verdict in verdicts if not verdict.is_open]


def _gate_verdicts(attempt: Attempt, facts: WaitFacts) -> list[GateVerdict]:
    """Evaluate each gate that a claim checks."""
    return [
        GateVerdict(gate.name, True, str(gate.open_sentence))
        if gate.lets_pass(facts.gates)
        else GateVerdict(
            gate.name,
            False,
            gate.sentence(facts.gates),
            facts.holders if gate is CONCURRENCY else limit_holders(gate.name, attempt),
        )
        for gate in GATES
    ]


def _starts_and_holders(
    attempts: Sequence[Attempt], facts: Mapping[str, GateFacts]
) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[LimitHolder, ...]]]:
    """Return what counts against the limits of attempts, by attempt id: the starts of the rate limit, and the holders.

    Runs one query, or none.
    """
    counted = [each for each in attempts if _has_counted_starts(facts[each.pk])]
    full = [each for each in attempts if not CONCURRENCY.lets_pass(facts[each.pk])]
    parts = _load_parts(
        [_recent_starts(each.name, facts[each.pk]) for each in counted] + [_holders_of_name(each.name) for each in full]
    )
    starts = {each.pk: tuple(sorted(row[-1] for row in parts.pop(0))) for each in counted}
    return starts, {each.pk: tuple(_limit_holder(*row) for row in parts.pop(0)) for each in full}


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


def polling_verdict(attempt: Attempt, now: int, polls: QueuePolls) -> GateVerdict:
    """Return the verdict on recent polls of the queue."""
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


DUE = "due"
"""The gate of attempts with a delay. The reason tells apart why an attempt is delayed."""
PERSONS: Wiring[Callable[[Sequence[Attempt], int], Mapping[str, str]] | None] = process_state.wiring(None)
"""Returns for whom open human tasks wait, by attempt id. The slice of human tasks connects it."""


@dataclass(frozen=True, slots=True)
class WaitReason:
    """What an open attempt waits for.

    `kind`: the name of the gate that is closed; `polled` without a worker; `queued` if only its turn is missing;
    `worker` while a worker has it; `engine` for a step without a queue. `since`: the start of that state in epoch
    milliseconds; None if the words name a time.
    """

    kind: str
    sentence: str
    brief: str
    since: int | None


def interest_sort_key(attempt: Attempt) -> tuple[int, int]:
    """Return a sort key that puts queued attempts first and attempts that wait for other tasks last."""
    if attempt.task.type in CONTAINER_STEP_TYPES:
        return 3, attempt.seq
    return {"PENDING": 0}.get(attempt.status, 1 if attempt.queue == "" else 2), attempt.seq


def persons_of(attempts: Sequence[Attempt], now: int) -> Mapping[str, str]:
    """Return for whom those of the attempts wait that are human tasks, by attempt id. Runs one query, or none."""
    human = [each for each in attempts if each.task.type == Human.type]
    return find(human, now) if human and (find := PERSONS.value) is not None else {}


def wait_reason(
    attempt: Attempt, facts: WaitFacts | None, now: int, *, tries: int | None = None, person: str = ""
) -> WaitReason:
    """Return what an open attempt waits for. The attempt is loaded with its task and run.

    `facts`: of an attempt in a queue. `tries`: the number of attempts that its policy allows, if known. `person`: for
    whom it waits, if it is a human task.
    """
    if attempt.status == "PENDING" and facts is not None:
        return _reason_in_queue(attempt, facts, tries, now)
    if attempt.queue:
        worker = _("on %(worker)s") % {"worker": attempt.worker} if attempt.worker else _("in progress")
        return WaitReason("worker", _describe_work(attempt, now), worker, attempt.claimed_at or attempt.started_at)
    describe = ENGINE_WAITS.get(attempt.task.type, _describe_unknown)
    sentence, brief = describe(attempt, now)
    ends = attempt.task.type == Wait.type and attempt.ends_at < NEVER
    if person:
        sentence, brief = f"{sentence}, {person}", f"{brief}, {person}"
    return WaitReason("engine", sentence, brief, None if ends else attempt.scheduled_at)


def _count_tries(attempt: Attempt) -> int:
    """Return the number of attempts since the task was last entered: those before a rerun do not count."""
    return attempt.number + 1 - (attempt.task.step_state.get(FIRST_NUMBER, 0) if attempt.number else 0)


def name_attempt(attempt: Attempt, tries: int | None) -> str:
    """Return which attempt it is, and of how many. `tries`: the attempts that its policy allows, if known."""
    facts = {"number": attempt.number + 1, "tries": tries}
    if attempt.status == FAILED_FOR_GOOD:
        return _("attempt %(number)s, not retried because the error is terminal") % facts
    if not tries:
        return _("attempt %(number)s") % facts
    facts["tried"] = tried = _count_tries(attempt)
    if tried > tries:
        return _("attempt %(number)s, retried by hand") % facts
    if tried <= attempt.number:
        return _("attempt %(number)s, %(tried)s of %(tries)s since the rerun") % facts
    return _("attempt %(number)s of %(tries)s") % facts


def why_not_retried(attempt: Attempt, tries: int | None, *, has_policy: bool = True) -> str:
    """Return why the policy of a failed attempt allows no other one, or an empty text.

    `tries`: the attempts that the policy allows. `has_policy`: the step has a task definition, or its own `retryCount`.
    """
    if attempt.status == FAILED_FOR_GOOD:
        return _("Not retried: the worker reported an error that no retry can solve.")
    if attempt.status not in (FAILED, EXPIRED) or tries is None or (tried := _count_tries(attempt)) < tries:
        return ""
    if tried > tries:
        return _("Not retried: this attempt was a retry by hand, which is not repeated.")
    if tries == 1 and not has_policy:
        return _("Not retried: it has no task definition; steps without one are not retried.")
    if tries == 1:
        return _("Not retried: its definition allows no retries.")
    return _("Not retried: all %(count)s attempts have failed.") % {"count": tried}


def brief_delays(attempts: Iterable[Attempt], now: int) -> dict[str, str]:
    """Return in a few words why attempts that were loaded with their run are not due, by attempt id.

    Runs no query if all of them are due.
    """
    delayed = [each for each in attempts if is_queued(each) and each.visible_at > now]
    facts = facts_of_attempts(delayed, now) if delayed else {}
    return {each.pk: brief_cause_of_delay(facts[each.pk]) or _describe_delay(each, None, now)[1] for each in delayed}


def _reason_in_queue(attempt: Attempt, facts: WaitFacts, tries: int | None, now: int) -> WaitReason:
    closed = next((gate for gate in GATES if not gate.lets_pass(facts.gates)), None)
    since = None if attempt.visible_at > now else attempt.pending_since
    if closed and closed.name == DUE:
        return WaitReason(DUE, *_describe_delay(attempt, tries, now), since)
    if closed:
        sentence, brief = closed.sentence(facts.gates), closed.brief(facts.gates)
        return WaitReason(closed.name, _with_task(attempt, sentence), brief, since)
    polled = polling_verdict(attempt, now, facts.polls)
    if not polled.is_open:
        brief = _("only draining workers") if facts.polls.are_recent(now) else _("no workers")
        return WaitReason(polled.gate, _with_task(attempt, polled.sentence), brief, since)
    names: dict[str, Any] = {"queue": attempt.queue, "span": format_duration(now - attempt.pending_since)}
    sentence = _("queued in `%(queue)s` for %(span)s")
    if facts.same_key_ahead:
        names |= {"count": f"{facts.same_key_ahead:,}", "key": attempt.fairness_key}
        sentence = ngettext(
            "queued in `%(queue)s` for %(span)s, behind %(count)s task of fairness key `%(key)s`",
            "queued in `%(queue)s` for %(span)s, behind %(count)s tasks of fairness key `%(key)s`",
            facts.same_key_ahead,
        )
    return WaitReason("queued", _with_task(attempt, sentence % names), _("queued"), since)


def _with_task(attempt: Attempt, sentence: str) -> str:
    sentence = sentence.rstrip(".")
    return f"`{attempt.task.label}` — {sentence[:1].lower()}{sentence[1:]}"


def _describe_delay(attempt: Attempt, tries: int | None, now: int) -> tuple[str, str]:
    """Return why an attempt is delayed, as a sentence and in a few words."""
    facts = {
        "task": attempt.task.label,
        "left": format_duration(attempt.visible_at - now),
        "number": attempt.number + 1,
    }
    if attempt.poll_count:
        sentence = _("`%(task)s` was returned to its queue by its worker and is due in %(left)s")
        return sentence % facts, _("returned, due in %(left)s") % facts
    if not attempt.number:
        return _("`%(task)s` starts in %(left)s") % facts, _("due in %(left)s") % facts
    error = _("; previous error: %(reason)s") % {"reason": informative_line(attempt.reason)} if attempt.reason else ""
    sentence = _("retry of `%(task)s` in %(left)s") % facts
    return f"{sentence} ({name_attempt(attempt, tries)}){error}", _("attempt %(number)s in %(left)s") % facts


def _describe_work(attempt: Attempt, now: int) -> str:
    facts = {"task": attempt.task.label, "worker": attempt.worker}
    facts["span"] = format_duration(now - (attempt.claimed_at or attempt.started_at or now))
    left = (attempt.lease_ends_at or 0) - now
    lease = _("; lease expires in %(left)s") % {"left": format_duration(left)} if left > 0 else ""
    if attempt.worker:
        return _("`%(task)s` on worker `%(worker)s` for %(span)s") % facts + lease
    return _("`%(task)s` on an unknown worker for %(span)s") % facts + lease


def _describe_unknown(attempt: Attempt, now: int) -> tuple[str, str]:
    return _("`%(task)s` (%(type)s) is waiting") % {"task": attempt.task.label, "type": attempt.task.type}, _("waiting")


def _describe_timer(attempt: Attempt, now: int) -> tuple[str, str]:
    facts: dict[str, Any] = {"task": attempt.task.label}
    if attempt.ends_at == NEVER:
        return _("`%(task)s` is waiting to be completed through the API") % facts, _("waiting for the API")
    facts |= {"until": format_near_time(attempt.ends_at, now), "left": format_duration(attempt.ends_at - now)}
    if attempt.ends_at <= now:
        return _("`%(task)s` is waiting, its time has come") % facts, _("time has come")
    return (
        _("`%(task)s` is waiting until %(until)s, %(left)s left") % facts,
        _("until %(until)s, %(left)s left") % facts,
    )


def _engine_wait(sentence: str | LazyText, brief: str | LazyText) -> Callable[[Attempt, int], tuple[str, str]]:
    def describe(attempt: Attempt, now: int) -> tuple[str, str]:
        span = format_duration(now - attempt.scheduled_at)
        facts = {"task": attempt.task.label, "iteration": attempt.task.iteration, "span": span}
        return sentence % facts, brief % facts

    return describe


def _describe_phase(attempt: Attempt, now: int) -> tuple[str, str]:
    facts = PHASES.get(attempt.task.iteration, gettext_lazy("`%(task)s` is waiting for the tasks of its body"))
    return facts % {"task": attempt.task.label}, _("waiting")


PHASES = {
    2: gettext_lazy("`%(task)s` is waiting for its error handler"),
    3: gettext_lazy("`%(task)s` is waiting for its `finallyTasks`"),
}
ENGINE_WAITS: dict[str, Callable[[Attempt, int], tuple[str, str]]] = {
    Human.type: _engine_wait(gettext_lazy("human task `%(task)s` pending for %(span)s"), gettext_lazy("human task")),
    Wait.type: _describe_timer,
    Yield.type: _engine_wait(
        gettext_lazy("`%(task)s` has been waiting for a signal for %(span)s"), gettext_lazy("waiting for a signal")
    ),
    WaitForWebhook.type: _engine_wait(
        gettext_lazy("`%(task)s` has been waiting for a webhook event for %(span)s"),
        gettext_lazy("waiting for a webhook"),
    ),
    PullWorkflowMessages.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for a workflow message"), gettext_lazy("waiting for a message")
    ),
    SubWorkflow.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for its sub-workflow"), gettext_lazy("sub-workflow")
    ),
    Join.type: _engine_wait(gettext_lazy("`%(task)s` is waiting for its branches"), gettext_lazy("waiting")),
    ExclusiveJoin.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for the first of its branches"), gettext_lazy("waiting")
    ),
    DoWhile.type: _engine_wait(
        gettext_lazy("`%(task)s` is in iteration %(iteration)s"), gettext_lazy("iteration %(iteration)s")
    ),
    ForEach.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for its items, %(iteration)s started"), gettext_lazy("waiting")
    ),
    ForEachItem.type: _engine_wait(
        gettext_lazy("`%(task)s` is waiting for the tasks of its item"), gettext_lazy("waiting")
    ),
    TryCatch.type: _describe_phase,
}
