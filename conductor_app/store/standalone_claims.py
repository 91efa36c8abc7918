"""Claims of standalone tasks. A worker in quarantine gets none."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ..core.standalone.snapshot import StandaloneTask
from ..models.fields import loads
from .claims import CLAIM_ORDER, IS_CLAIMABLE, claimable_params, mark_claimed
from .standalone_tasks import ATTEMPT_READ_COLUMNS, COLUMNS, parse_standalone_task
from .statements import fetch, lock_clause, placeholders

CLAIMABLE_STANDALONE = (
    f"FROM conductor_attempt a WHERE {IS_CLAIMABLE} AND a.run_id IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM conductor_worker q "
    'WHERE q.queue = %s AND q."group" = %s AND q.name = %s AND q.quarantine_until > %s)'
)
SELECT_CLAIMED = (
    f"SELECT s.task_id, {', '.join(f's.{column}' for column in COLUMNS)}, t.status, t.created_at, t.name, "
    f"FALSE, FALSE, FALSE, {', '.join(f'a.{column}' for column in ATTEMPT_READ_COLUMNS)}, "
    "CASE WHEN a.id = c.id THEN s.definition END "
    "FROM conductor_attempt c JOIN conductor_standalonetask s ON s.task_id = c.task_id "
    "JOIN conductor_task t ON t.id = c.task_id JOIN conductor_attempt a ON a.task_id = c.task_id "
)


def is_any_waiting(queue: str, group: str, name: str, now: int) -> bool:
    """Return True if the queue has a claimable attempt for this worker. Takes no lock."""
    return bool(fetch(f"SELECT 1 {CLAIMABLE_STANDALONE} LIMIT 1", _claim_params(queue, group, name, now)))


def claim_attempts(queue: str, group: str, name: str, now: int, count: int) -> list[str]:
    """Claim attempts for a worker. Returns the ids in dispatch order."""
    chosen = f"SELECT a.id {CLAIMABLE_STANDALONE} {CLAIM_ORDER}{lock_clause('a', skip_locked=True)}"
    return mark_claimed(chosen, [*_claim_params(queue, group, name, now), count], f"{group}/{name}", now)


def claim_attempt(attempt_id: str, worker: str, now: int) -> bool:
    """Claim the attempt with this id. Returns False if it is not claimable."""
    chosen = "SELECT a.id FROM conductor_attempt a WHERE a.id = %s AND a.visible_at <= %s AND a.ends_at > %s"
    return bool(mark_claimed(chosen + lock_clause("a"), [attempt_id, now, now], worker, now))


def load_claimed(ids: Sequence[str]) -> list[tuple[StandaloneTask, dict[str, Any]]]:
    """Return the tasks of claimed attempts, each with its newest attempt, in order and with their definitions."""
    rows = fetch(f"{SELECT_CLAIMED} WHERE c.id IN ({placeholders(ids)}) ORDER BY s.task_id, a.number", list(ids))
    claimed = {}
    for _, group in groupby(rows, key=lambda row: row[0]):
        attempt_rows = list(group)
        standalone = parse_standalone_task([row[:-1] for row in attempt_rows])
        claimed[standalone.attempts[-1].id] = standalone, loads(attempt_rows[-1][-1])
    return [claimed[id] for id in ids]


def _claim_params(queue: str, group: str, name: str, now: int) -> list[Any]:
    return [*claimable_params(queue, f"{group}/{name}", now), queue, group, name, now]
