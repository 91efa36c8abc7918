"""What is told of stand-alone tasks: which of it may go out now."""

from ..core.snapshot import NEVER
from .statements import fetch, for_update

EARLIER = (
    "SELECT 1 FROM conductor_notice e WHERE e.task_id = n.task_id AND e.group_id = n.group_id AND e.id < n.id "
    f"AND e.due_at < {NEVER}"
)


def take(now: int, held_until: int, count: int) -> list[int]:
    """Take notices that are due, those that others are taking skipped; none before an earlier one of its task."""
    chosen = (
        f"SELECT n.id FROM conductor_notice n WHERE n.due_at <= %s AND n.due_at < {NEVER} AND NOT EXISTS ({EARLIER}) "
        f"ORDER BY n.due_at, n.id LIMIT %s{for_update('n', skip_locked=True)}"
    )
    taken = fetch(
        f"WITH chosen AS MATERIALIZED ({chosen}) UPDATE conductor_notice SET due_at = %s "
        "WHERE id IN (SELECT id FROM chosen) RETURNING id",
        [now, count, held_until],
    )
    return [id for (id,) in taken]
