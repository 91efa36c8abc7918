"""Queries for due rows, each over an index."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..core.snapshot import NEVER
from ..core.states import BULK
from ..models.named_statements import load_statements
from .statements import execute, fetch

DUE_ROWS_SQL = load_statements("due_rows", never=str(NEVER), open_bulk_states=", ".join(map(repr, sorted(BULK.open))))


class DueAttempts(NamedTuple):
    """Attempts of one run, or of one standalone task, with an expired timer."""

    run_id: str
    task_id: str
    attempt_ids: list[str]


def due_attempts(now: int, limit: int) -> list[DueAttempts]:
    """Return open attempts with a due timer, the longest overdue first."""
    rows = fetch(*DUE_ROWS_SQL["due_attempts"].bind(now=now, limit=limit))
    return [
        DueAttempts(run_id, task_id, [id for *_, id in group])
        for (run_id, task_id), group in groupby(sorted(rows), key=lambda row: row[:2])
    ]


def due_standalone_tasks(now: int, limit: int) -> list[str]:
    """Return standalone tasks whose deadline has passed, the longest overdue first."""
    return _due_ids("due_standalone_tasks", now, limit)


def due_runs(now: int, limit: int) -> list[str]:
    """Return open runs with a due timer, the longest overdue first."""
    return _due_ids("due_runs", now, limit)


def due_messages(now: int, limit: int) -> list[int]:
    """Return messages that were not delivered right after their commit."""
    return _due_ids("due_messages", now, limit)


def due_schedules(now: int, limit: int) -> list[int]:
    """Return schedules whose next slot is due, the longest overdue first."""
    return _due_ids("due_schedules", now, limit)


def startable_slots(now: int, limit: int) -> list[str]:
    """Return waiting slots whose run can start now, earliest first."""
    return _due_ids("startable_slots", now, limit)


def _due_ids(statement: str, now: int, limit: int) -> list[Any]:
    return [id for (id,) in fetch(*DUE_ROWS_SQL[statement].bind(now=now, limit=limit))]


SWEEPS = (
    "fire_schedules",
    "start_waiting_slots",
    "expire_leases",
    "pass_deadlines",
    "wake_runs",
    "deliver_messages",
    "group_failures",
    "release_budget_holds",
)
"""The sweeps whose earliest due times are known, in the order of the statement `due_times`."""


def due_times() -> dict[str, int]:
    """Return the earliest due time of each sweep that has rows."""
    [row] = fetch(*DUE_ROWS_SQL["due_times"].bind())
    return {name: moment for name, moment in zip(SWEEPS, row, strict=True) if moment is not None}


def next_due_moment() -> int | None:
    """Return the earliest due time of all sweeps."""
    return min(due_times().values(), default=None)


def due_jobs(now: int, queues: Sequence[str], model_queues: Sequence[str] = ()) -> list[str]:
    """Return which of the jobs "work", "bulk" and "call_models" have something to do.

    `queues`: those of the built-in workers. `model_queues`: those of the built-in workers of AI tasks.
    """
    statement = DUE_ROWS_SQL["due_jobs_and_model_calls" if model_queues else "due_jobs"]
    [row] = fetch(*statement.bind(queues=queues, model_queues=model_queues, now=now))
    return [name for name, is_due in zip(("work", "bulk", "call_models"), row, strict=False) if is_due]


def expired_slots(before: int, limit: int) -> list[str]:
    """Return slots that were handled before a time, oldest first. Waiting slots are kept."""
    rows = fetch(*DUE_ROWS_SQL["expired_slots"].bind(before=before, limit=limit))
    return [id for (id,) in rows]


def postpone_attempts(attempt_ids: list[str], moment: int, now: int) -> None:
    """Set the timers of these attempts to `moment`, unless they are no longer due."""
    execute(*DUE_ROWS_SQL["postpone_attempts"].bind(moment=moment, ids=attempt_ids, now=now))


def claim_to_publish(now: int, held_until: int, count: int) -> list[int]:
    """Claim due messages to other systems until `held_until`, and return their ids. Locked rows are skipped."""
    statement = DUE_ROWS_SQL["claim_to_publish"]
    claimed = fetch(*statement.bind(now=now, held_until=held_until, count=count))
    return sorted(id for (id,) in claimed)
