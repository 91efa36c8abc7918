"""What stand-alone tasks wait for, and who waits for them."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..core.states import COMPLETED, TASK
from ..models.fields import dumps
from .statements import fetch, placeholders, share_lock_clause

CHUNK = 300


class RequiredTask(NamedTuple):
    """A task that others wait for."""

    status: str
    expires_at: int

    def satisfies(self, accepts_failure: bool) -> bool:
        """Whether who waits for it need not wait: any end will do, or a good one only."""
        return self.status in TASK.final if accepts_failure else self.status == COMPLETED


def lock_tasks(task_ids: Sequence[str]) -> dict[str, RequiredTask]:
    """Those of the tasks that exist.

    They stay as they are until the transaction ends: what is not resolved yet will find who waits for it by then.
    """
    ids, found = sorted(task_ids), {}
    for some in _chunks(ids):
        where = f"s.task_id IN ({placeholders(some)}) ORDER BY s.task_id"
        locked = fetch(
            f"SELECT s.task_id, s.expires_at FROM conductor_standalonetask s WHERE {where}{share_lock_clause('s')}",
            some,
        )
        # Asked for by itself: whoever had to wait for the locks sees what was resolved meanwhile.
        statuses = dict(fetch(f"SELECT id, status FROM conductor_task WHERE id IN ({placeholders(some)})", some))
        for id, expires_at in locked:
            found[id] = RequiredTask(statuses[id], expires_at)
    return found


def dependents_of(required_id: str, completed: bool, limit: int) -> list[str]:
    """Tasks that the end of this one brings nearer to their turn, in the order of their ids."""
    accepts = "" if completed else " AND s.accepts_failure"
    rows = fetch(
        "SELECT d.task_id FROM conductor_dependency d JOIN conductor_standalonetask s ON s.task_id = d.task_id "
        f"WHERE d.required_id = %s AND NOT d.is_satisfied AND d.task_id <> d.required_id{accepts} "
        "ORDER BY d.task_id LIMIT %s",
        [required_id, limit],
    )
    return [id for (id,) in rows]


def insert_resolved_message(task_id: str, facts: dict[str, Any], now: int) -> int:
    """Leave the message that a task is resolved; its id."""
    [(id,)] = fetch(
        'INSERT INTO conductor_message ("to", subject, facts, sent_at, due_at, tries, error) '
        "VALUES (%s, 'resolved', %s, %s, %s, 0, '') RETURNING id",
        [task_id, dumps(facts), now, now],
    )
    return id


def _chunks(values: list[str]) -> Iterator[list[str]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))
