"""Load claimed attempts with their tasks and runs in one statement, for the responses to workers."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import takewhile
from typing import Any

from ..models.claimed_attempts import ClaimedAttempt, ClaimedAttemptRun, ClaimedAttemptTask
from .statements import fetch, placeholders


def _columns(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.removesuffix("_text") for name in takewhile(lambda name: name != "task", names))


ATTEMPT_COLUMNS = _columns(field.name for field in fields(ClaimedAttempt))
TASK_COLUMNS, RUN_COLUMNS = _columns(ClaimedAttemptTask._fields), _columns(ClaimedAttemptRun._fields)
ATTEMPT_END, TASK_END = len(ATTEMPT_COLUMNS), len(ATTEMPT_COLUMNS) + len(TASK_COLUMNS)
CLAIMED_COLUMNS = ", ".join(
    f"{alias}.{column}"
    for alias, columns in (("a", ATTEMPT_COLUMNS), ("t", TASK_COLUMNS), ("r", RUN_COLUMNS))
    for column in columns
)
"""The columns that `parse_claimed` reads, of an attempt `a`, its task `t` and its run `r`. The first is not null."""
SQL = (
    f"SELECT {CLAIMED_COLUMNS} FROM conductor_attempt a JOIN conductor_task t ON t.id = a.task_id "
    "JOIN conductor_run r ON r.id = a.run_id "
    "WHERE a.id IN "
)


def load_claimed(ids: Sequence[str]) -> list[ClaimedAttempt]:
    """Return the attempts in the order of the ids, with their tasks and runs."""
    rows = fetch(f"{SQL}({placeholders(ids)})", ids)
    by_id = {attempt.id: attempt for attempt in map(parse_claimed, rows)}
    return [by_id[id] for id in ids if id in by_id]


def parse_claimed(row: tuple[Any, ...]) -> ClaimedAttempt:
    """Return an attempt with its task and run from a row with CLAIMED_COLUMNS."""
    task, run = ClaimedAttemptTask._make(row[ATTEMPT_END:TASK_END]), ClaimedAttemptRun._make(row[TASK_END:])
    return ClaimedAttempt(*(*row[:ATTEMPT_END], task, run))
