"""The columns of a claimed attempt with its task and run, for the responses to workers."""

from collections.abc import Iterable
from dataclasses import fields
from itertools import takewhile
from typing import Any

from ..models.claimed_attempts import ClaimedAttempt, ClaimedAttemptRun, ClaimedAttemptTask


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


def parse_claimed(row: tuple[Any, ...]) -> ClaimedAttempt:
    """Return an attempt with its task and run from a row with CLAIMED_COLUMNS."""
    task, run = ClaimedAttemptTask._make(row[ATTEMPT_END:TASK_END]), ClaimedAttemptRun._make(row[TASK_END:])
    return ClaimedAttempt(*(*row[:ATTEMPT_END], task, run))
