"""Dependencies between standalone tasks."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..core.states import COMPLETED, TASK
from ..models.fields import dumps
from .statements import fetch, placeholders, share_lock_clause

CHUNK = 300


class RequiredTask(NamedTuple):
    """A task that other tasks wait for."""

    status: str
    expires_at: int

    def satisfies(self, accepts_failure: bool) -> bool:
        """Return True if the dependency is satisfied: the task is completed, or resolved if failures are accepted."""
        return self.status in TASK.final if accepts_failure else self.status == COMPLETED


def lock_tasks(task_ids: Sequence[str]) -> dict[str, RequiredTask]:
    """Lock the existing ones of these tasks until the transaction ends, and return them by id.

    So the resolution of an open task, which needs the same lock, finds its new dependents.
    """
    ids, locked_tasks = sorted(task_ids), {}
    for chunk in _chunks(ids):
        where = f"s.task_id IN ({placeholders(chunk)}) ORDER BY s.task_id"
        locked = fetch(
            f"SELECT s.task_id, s.expires_at FROM conductor_standalonetask s WHERE {where}{share_lock_clause('s')}",
            chunk,
        )
        # A separate query, so that it sees tasks that were resolved while the first one waited for the locks.
        statuses = dict(fetch(f"SELECT id, status FROM conductor_task WHERE id IN ({placeholders(chunk)})", chunk))
        for id, expires_at in locked:
            locked_tasks[id] = RequiredTask(statuses[id], expires_at)
    return locked_tasks


def dependents_of(required_id: str, completed: bool, limit: int) -> list[str]:
    """Return the tasks with an unsatisfied dependency on this one, ordered by id.

    `completed`: True if the required task completed; otherwise only tasks that accept its failure.
    """
    accepts = "" if completed else " AND s.accepts_failure"
    rows = fetch(
        "SELECT d.task_id FROM conductor_dependency d JOIN conductor_standalonetask s ON s.task_id = d.task_id "
        f"WHERE d.required_id = %s AND NOT d.is_satisfied AND d.task_id <> d.required_id{accepts} "
        "ORDER BY d.task_id LIMIT %s",
        [required_id, limit],
    )
    return [id for (id,) in rows]


def insert_resolved_message(task_id: str, facts: dict[str, Any], now: int) -> int:
    """Insert the message that a task is resolved, and return its id."""
    [(id,)] = fetch(
        'INSERT INTO conductor_message ("to", subject, facts, sent_at, due_at, tries, error) '
        "VALUES (%s, 'resolved', %s, %s, %s, 0, '') RETURNING id",
        [task_id, dumps(facts), now, now],
    )
    return id


def _chunks(values: list[str]) -> Iterator[list[str]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))
