"""Queries for due rows, each over a partial index."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..core.snapshot import NEVER
from ..core.states import BULK
from ..models.index_hints import index_hint
from .statements import execute, fetch, lock_clause, placeholders

OPEN = "status IN ('LEASED', 'PENDING')"
OPEN_RUN = "status IN ('PAUSED', 'RUNNING')"
RUNS_TO_WAKE = f"conductor_run{index_hint('run_to_wake')} WHERE {OPEN_RUN}"

HAS_TIMER = f"due_at < {NEVER}"
HAS_WAKE_TIME = f"wake_at < {NEVER}"

IS_INTERNAL_MESSAGE = "NOT (subject = 'publish')"
"""SQLite uses a partial index only if the query repeats the condition of the index literally."""


class DueAttempts(NamedTuple):
    """Attempts of one run, or of one standalone task, with an expired timer."""

    run_id: str
    task_id: str
    attempt_ids: list[str]


def due_attempts(now: int, limit: int) -> list[DueAttempts]:
    """Return open attempts with a due timer, the longest overdue first."""
    rows = fetch(
        "SELECT COALESCE(run_id, ''), CASE WHEN run_id IS NULL THEN task_id ELSE '' END, id FROM conductor_attempt "
        f"WHERE {OPEN} AND {HAS_TIMER} AND due_at <= %s ORDER BY due_at LIMIT %s",
        [now, limit],
    )
    return [
        DueAttempts(run_id, task_id, [id for *_, id in group])
        for (run_id, task_id), group in groupby(sorted(rows), key=lambda row: row[:2])
    ]


def due_standalone_tasks(now: int, limit: int) -> list[str]:
    """Return standalone tasks whose deadline has passed, the longest overdue first."""
    rows = fetch(
        "SELECT task_id FROM conductor_standalonetask "
        f"WHERE wake_at <= %s AND {HAS_WAKE_TIME} ORDER BY wake_at LIMIT %s",
        [now, limit],
    )
    return [id for (id,) in rows]


def due_runs(now: int, limit: int) -> list[str]:
    """Return open runs with a due timer, the longest overdue first."""
    rows = fetch(f"SELECT id FROM {RUNS_TO_WAKE} AND wake_at <= %s ORDER BY wake_at LIMIT %s", [now, limit])
    return [id for (id,) in rows]


def due_messages(now: int, limit: int) -> list[int]:
    """Return messages that were not delivered right after their commit."""
    return [
        id
        for (id,) in fetch(
            "SELECT id FROM conductor_message "
            f"WHERE due_at <= %s AND {IS_INTERNAL_MESSAGE} ORDER BY due_at, id LIMIT %s",
            [now, limit],
        )
    ]


SCHEDULER_IS_RUNNING = "NOT EXISTS (SELECT 1 FROM conductor_scheduler WHERE is_paused)"
SLOT_CAN_START = f"""e.state = 'POLLED'
    AND EXISTS (SELECT 1 FROM conductor_schedule s WHERE s.name = e.schedule_name AND NOT s.is_paused)
    AND NOT (e.waits_for_others AND (
        EXISTS (SELECT 1 FROM conductor_run r
                WHERE r.schedule = e.schedule_name AND NOT (r.schedule = '') AND r.{OPEN_RUN})
        OR EXISTS (SELECT 1 FROM conductor_scheduleexecution o WHERE o.state = 'POLLED'
                   AND o.schedule_name = e.schedule_name AND (o.slot_at, o.id) < (e.slot_at, e.id))))
    AND {SCHEDULER_IS_RUNNING}"""
"""Slots whose run can start now. If runs of a schedule wait for one another, only the earliest slot qualifies."""


def due_schedules(now: int, limit: int) -> list[int]:
    """Return schedules whose next slot is due, the longest overdue first."""
    rows = fetch(
        "SELECT id FROM conductor_schedule "
        f"WHERE next_run_at <= %s AND {SCHEDULER_IS_RUNNING} ORDER BY next_run_at LIMIT %s",
        [now, limit],
    )
    return [id for (id,) in rows]


def startable_slots(now: int, limit: int) -> list[str]:
    """Return waiting slots whose run can start now, earliest first."""
    rows = fetch(
        f"SELECT e.id FROM conductor_scheduleexecution e WHERE e.executed_at <= %s AND {SLOT_CAN_START} "
        "ORDER BY e.slot_at, e.id LIMIT %s",
        [now, limit],
    )
    return [id for (id,) in rows]


EARLIEST_DUE = {
    "fire_schedules": (
        f"SELECT MIN(next_run_at) FROM conductor_schedule WHERE next_run_at IS NOT NULL AND {SCHEDULER_IS_RUNNING}"
    ),
    "start_waiting_slots": f"SELECT MIN(e.executed_at) FROM conductor_scheduleexecution e WHERE {SLOT_CAN_START}",
    "expire_leases": f"SELECT MIN(due_at) FROM conductor_attempt WHERE {OPEN} AND {HAS_TIMER}",
    "pass_deadlines": f"SELECT MIN(wake_at) FROM conductor_standalonetask WHERE {HAS_WAKE_TIME}",
    "wake_runs": f"SELECT MIN(wake_at) FROM {RUNS_TO_WAKE}",
    "deliver_messages": f"SELECT MIN(due_at) FROM conductor_message WHERE {IS_INTERNAL_MESSAGE}",
    "group_failures": "SELECT MIN(at) FROM conductor_failure WHERE group_id IS NULL",
    "release_budget_holds": "SELECT MIN(until) FROM conductor_budgethold",
}
"""Queries for the earliest due time of each sweep."""
SELECT_DUE_TIMES = f"SELECT ({'), ('.join(EARLIEST_DUE.values())})"


def due_times() -> dict[str, int]:
    """Return the earliest due time of each sweep that has rows."""
    [row] = fetch(SELECT_DUE_TIMES)
    return {name: moment for name, moment in zip(EARLIEST_DUE, row, strict=True) if moment is not None}


def next_due_moment() -> int | None:
    """Return the earliest due time of all sweeps."""
    return min(due_times().values(), default=None)


DUE_ATTEMPT = (
    "EXISTS (SELECT 1 FROM conductor_attempt WHERE queue IN ({queues}) AND status = 'PENDING' AND NOT (queue = '') "
    "AND visible_at <= %s)"
)
DUE_WORK = (
    f"{DUE_ATTEMPT} "
    "OR EXISTS (SELECT 1 FROM conductor_message WHERE subject = 'publish' AND due_at <= %s) "
    f"OR EXISTS (SELECT 1 FROM conductor_pulsemessage WHERE due_at <= %s AND due_at < {NEVER})"
)
DUE_BULK = (
    f"EXISTS (SELECT 1 FROM conductor_bulkoperation WHERE state IN ({', '.join(map(repr, sorted(BULK.open)))}) "
    "AND due_at <= %s AND held_until <= %s)"
)


def due_jobs(now: int, queues: Sequence[str], model_queues: Sequence[str] = ()) -> list[str]:
    """Return which of the jobs "work", "bulk" and "call_models" have something to do.

    `queues`: those of the built-in workers. `model_queues`: those of the built-in workers of AI tasks.
    """
    conditions = [DUE_WORK.format(queues=placeholders(queues)), DUE_BULK]
    params: list[Any] = [*queues, now, now, now, now, now]
    if model_queues:
        conditions.append(DUE_ATTEMPT.format(queues=placeholders(model_queues)))
        params += [*model_queues, now]
    [row] = fetch(f"SELECT {', '.join(conditions)}", params)
    return [name for name, is_due in zip(("work", "bulk", "call_models"), row, strict=False) if is_due]


def expired_slots(before: int, limit: int) -> list[str]:
    """Return slots that were handled before a time, oldest first. Waiting slots are kept."""
    rows = fetch(
        "SELECT id FROM conductor_scheduleexecution WHERE executed_at < %s AND state <> 'POLLED' "
        "ORDER BY executed_at LIMIT %s",
        [before, limit],
    )
    return [id for (id,) in rows]


def postpone_attempts(attempt_ids: list[str], moment: int, now: int) -> None:
    """Set the timers of these attempts to `moment`, unless they are no longer due."""
    where = f"id IN ({placeholders(attempt_ids)}) AND due_at <= %s"
    execute(f"UPDATE conductor_attempt SET due_at = %s WHERE {where}", [moment, *attempt_ids, now])


def claim_to_publish(now: int, held_until: int, count: int) -> list[int]:
    """Claim due messages to other systems until `held_until`, and return their ids. Locked rows are skipped."""
    chosen = (
        "SELECT m.id FROM conductor_message m WHERE m.subject = 'publish' AND m.due_at <= %s "
        f"ORDER BY m.due_at, m.id LIMIT %s{lock_clause('m', skip_locked=True)}"
    )
    claimed = fetch(
        f"WITH chosen AS MATERIALIZED ({chosen}) UPDATE conductor_message SET due_at = %s "
        "WHERE id IN (SELECT id FROM chosen) RETURNING id",
        [now, count, held_until],
    )
    return sorted(id for (id,) in claimed)
