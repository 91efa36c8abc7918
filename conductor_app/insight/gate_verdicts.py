"""Why does this attempt wait: each gate with its verdict, whether somebody polls, and whether the run is paused."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext as _

from .. import clock
from ..core.states import PAUSED
from ..models import Attempt, QueueHold, Run, TaskDefinition
from ..models.gates import CONCURRENCY, GATES, RATE, GateFacts, usage_query
from .durations import format_duration
from .last_transition import last_transition
from .queues import QUIET_AFTER_MS, polls_of

MOST_HOLDERS = 20
"""Holders of a limit that are named."""


@dataclass(frozen=True, slots=True)
class LimitHolder:
    """Who holds a place of a limit: a task that a worker has, or a run that goes on."""

    run_id: str
    attempt_id: str = ""
    worker: str = ""
    since: int = 0


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """One condition of being handed out: whether it is met, and the sentence that says so."""

    gate: str
    is_open: bool
    sentence: str
    holders: tuple[LimitHolder, ...] = ()


def explain_attempt(attempt_id: str) -> list[GateVerdict]:
    """Every condition that stands between a pending attempt and a worker; nothing for one that is not pending."""
    attempt = Attempt.objects.defer_payloads().select_related("run").filter(pk=attempt_id).first()
    return verdicts_on(attempt, clock.now()) if attempt else []


def verdicts_on(attempt: Attempt, now: int) -> list[GateVerdict]:
    """The verdicts on an attempt that was read with its run."""
    if attempt.status != "PENDING" or not attempt.queue:
        return []
    return [*gate_verdicts(attempt, now), polling_verdict(attempt, now), run_pause_verdict(attempt)]


def closed_gates(verdicts: Iterable[GateVerdict]) -> list[GateVerdict]:
    """Those that keep the attempt waiting."""
    return [verdict for verdict in verdicts if not verdict.is_open]


def gate_verdicts(attempt: Attempt, now: int) -> list[GateVerdict]:
    """The gates that the claim asks, each asked alone."""
    facts = gate_facts(attempt, now)
    return [
        GateVerdict(gate.name, True, str(gate.open_sentence))
        if gate.lets_pass(facts)
        else GateVerdict(gate.name, False, gate.sentence(facts), limit_holders(gate.name, attempt))
        for gate in GATES
    ]


def limit_holders(gate: str, attempt: Attempt) -> tuple[LimitHolder, ...]:
    """Who holds the places of the limit that shuts this gate, those that have held them longest first."""
    if gate == "concurrency":
        found = (
            Attempt.objects.filter(name=attempt.name, status="LEASED").exclude(queue="").order_by("claimed_at", "id")
        )
        rows = found.values_list("run_id", "id", "worker", "claimed_at")[:MOST_HOLDERS]
        return tuple(LimitHolder(run_id, id, worker, since or 0) for run_id, id, worker, since in rows)
    if gate == "run_slot" and (run := attempt.run) is not None:
        found = Run.objects.open().filter(name=run.name, limit_key=run.limit_key, is_held=False)
        rows = found.exclude(limit_key="").order_by("created_at", "id").values_list("id", "created_at")[:MOST_HOLDERS]
        return tuple(LimitHolder(run_id, since=since) for run_id, since in rows)
    return ()


def gate_facts(attempt: Attempt, now: int) -> GateFacts:
    """What the gates look at, read for one attempt; the counts only where there is a limit."""
    known = _registered_limits(attempt)
    concurrent_limit, rate_count, rate_seconds = (known[limit] for limit in LIMITS)
    return GateFacts(
        now=now,
        visible_at=attempt.visible_at,
        ends_at=attempt.ends_at,
        is_run_held=attempt.run is not None and attempt.run.is_held,
        concurrent_limit=concurrent_limit,
        leased=_count_leased(attempt.name) if concurrent_limit > 0 else 0,
        rate_count=rate_count,
        rate_seconds=rate_seconds,
        **(_recent_starts(attempt.name, rate_count, rate_seconds, now) if rate_count > 0 and rate_seconds > 0 else {}),
        queue_held_until=known["held_until_at"] or 0,
        queue_held_by=known["held_by"] or "",
        queue_held_because=known["held_reason"] or "",
    )


LIMITS = ("concurrent_limit", "rate_count", "rate_seconds")


def _registered_limits(attempt: Attempt) -> dict[str, Any]:
    """The limits that are registered now for its name, else its own; and its queue's hold. In one query."""
    definition = TaskDefinition.objects.filter(name=OuterRef("name"))
    hold = QueueHold.objects.filter(pk=OuterRef("queue"))
    columns = {f"now_{limit}": Subquery(definition.values(limit)[:1]) for limit in LIMITS}
    columns |= {f"held_{part}": Subquery(hold.values(part)[:1]) for part in ("until_at", "by", "reason")}
    row = Attempt.objects.filter(pk=attempt.pk).values(**columns).first() or dict.fromkeys(columns)
    now = {limit: row[f"now_{limit}"] for limit in LIMITS}
    return row | {limit: getattr(attempt, limit) if value is None else value for limit, value in now.items()}


def _count_leased(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(*usage_query(CONCURRENCY, name))
        [(count,)] = cursor.fetchall()
    return int(count)


def _recent_starts(name: str, count: int, seconds: int, now: int) -> dict[str, int]:
    """The starts of the window, and when so many of them have left it that there is room."""
    claimed = Attempt.objects.filter(name=name, rate_count__gt=0, claimed_at__gt=now - seconds * 1000)
    newest = list(claimed.order_by("-claimed_at").values_list("claimed_at", flat=True)[:count])
    if len(newest) < count:
        return {"starts": len(newest)}
    with connection.cursor() as cursor:
        cursor.execute(*usage_query(RATE, name, since=now - seconds * 1000))
        [(starts,)] = cursor.fetchall()
    return {"starts": int(starts), "rate_reopens_at": newest[-1] + seconds * 1000}


def polling_verdict(attempt: Attempt, now: int) -> GateVerdict:
    """Whether a worker has asked this queue for work lately."""
    polls = polls_of(attempt.queue, now)
    polled_at, named = polls.polled_at, {"queue": attempt.queue}
    if polled_at is None:
        return GateVerdict("polled", False, _("No worker has ever polled queue `%(queue)s`.") % named)
    named["span"] = format_duration(now - polled_at)
    if now - polled_at >= QUIET_AFTER_MS:
        return GateVerdict("polled", False, _("Nobody has polled queue `%(queue)s` for %(span)s.") % named)
    if polls.alive and polls.drained == polls.alive:
        return GateVerdict("polled", False, _("Only workers that are drained poll queue `%(queue)s`.") % named)
    return GateVerdict("polled", True, _("Queue `%(queue)s` was polled %(span)s ago.") % named)


def run_pause_verdict(attempt: Attempt) -> GateVerdict:
    """Whether the run is paused. That keeps no attempt back: the claim does not ask for it."""
    if attempt.run is not None and attempt.run.status == PAUSED:
        entry = last_transition(attempt.run_id, "pause")
        named = {"by": entry.by if entry else "", "reason": entry.reason if entry else ""}
        return GateVerdict("run", True, _pause_sentence(named) % named)
    return GateVerdict("run", True, _("The run is not paused."))


def _pause_sentence(named: dict[str, str]) -> str:
    if named["by"] and named["reason"]:
        return _("The run is paused by %(by)s (%(reason)s): this may be handed out, what follows it waits.")
    if named["by"]:
        return _("The run is paused by %(by)s: this may be handed out, what follows it waits.")
    return _("The run is paused: this may be handed out, what follows it waits.")
