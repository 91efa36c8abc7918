"""Claims of standalone tasks. A worker in quarantine gets none."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ..core.standalone.snapshot import StandaloneTask
from ..models.fields import loads
from ..models.named_statements import load_statements
from .claims import CLAIMS_SQL, mark_claimed
from .standalone_tasks import ATTEMPT_READ_COLUMNS, COLUMNS, parse_standalone_task
from .statements import fetch

STANDALONE_CLAIMS_SQL = load_statements(
    "standalone_claims",
    **CLAIMS_SQL.fragments
    | {
        "task_columns": ", ".join(f"s.{column}" for column in COLUMNS),
        "attempt_columns": ", ".join(f"a.{column}" for column in ATTEMPT_READ_COLUMNS),
    },
)


def is_any_waiting(queue: str, group: str, name: str, now: int) -> bool:
    """Return True if the queue has a claimable attempt for this worker. Takes no lock."""
    statement = STANDALONE_CLAIMS_SQL["is_any_waiting"]
    return bool(fetch(*statement.bind(queue=queue, worker=f"{group}/{name}", group=group, name=name, now=now)))


def claim_attempts(queue: str, group: str, name: str, now: int, count: int) -> list[str]:
    """Claim attempts for a worker. Returns the ids in dispatch order."""
    statement, worker = STANDALONE_CLAIMS_SQL["claim_standalone"], f"{group}/{name}"
    return mark_claimed(statement, queue=queue, worker=worker, group=group, name=name, now=now, count=count)


def claim_attempt(attempt_id: str, worker: str, now: int) -> bool:
    """Claim the attempt with this id. Returns False if it is not claimable."""
    statement = STANDALONE_CLAIMS_SQL["claim_standalone_attempt"]
    return bool(mark_claimed(statement, id=attempt_id, worker=worker, now=now))


def load_claimed(ids: Sequence[str]) -> list[tuple[StandaloneTask, dict[str, Any]]]:
    """Return the tasks of claimed attempts, each with its newest attempt, in order and with their definitions."""
    rows = fetch(*STANDALONE_CLAIMS_SQL["load_claimed_standalone"].bind(ids=ids))
    claimed = {}
    for _, group in groupby(rows, key=lambda row: row[0]):
        attempt_rows = list(group)
        standalone = parse_standalone_task([row[:-1] for row in attempt_rows])
        claimed[standalone.attempts[-1].id] = standalone, loads(attempt_rows[-1][-1])
    return [claimed[id] for id in ids]
