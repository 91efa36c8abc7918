"""Rows of task groups, and the check that all tasks of a group are resolved.

Two transactions that resolve the last two tasks at the same time do not see each other's change. So a task that is
resolved while others are open writes a message to check the group again. Usually other tasks are still open at that
check, and one statement deletes all such messages.
"""

from ..models import Message, TaskGroup
from ..models.outbox import ABOUT_GROUP
from .statement_batch import StatementBatch
from .statements import execute, fetch, lock_clause, placeholders

SECOND_MS = 1000
COLUMNS = ("id", "scheduler_id", "created_at", "expires_at", "sealed_at")
GROUP_AND_TASK = (
    "SELECT EXISTS (SELECT 1 FROM conductor_standalonetask s WHERE s.task_id = %s), "
    f"{', '.join(f'g.{column}' for column in COLUMNS)} "
    "FROM (SELECT 1 AS one) o LEFT JOIN conductor_taskgroup g ON g.id = %s"
)
UNRESOLVED = "SELECT 1 FROM conductor_standalonetask o WHERE NOT o.ever_resolved AND o.group_id = "


def is_resolved(group_id: str) -> bool:
    """Return True if each task of the group has been resolved at least once."""
    return not fetch(f"{UNRESOLVED}%s LIMIT 1", [group_id])


def load_group(id: str) -> TaskGroup | None:
    """Return the group, or None."""
    rows = fetch(f"SELECT {', '.join(COLUMNS)} FROM conductor_taskgroup WHERE id = %s", [id])
    return TaskGroup(**dict(zip(COLUMNS, rows[0], strict=True))) if rows else None


def load_group_for(task_id: str, id: str) -> tuple[TaskGroup | None, bool]:
    """Return the group of a new task, or None; and True if the task exists already."""
    [(task_exists, *values)] = fetch(GROUP_AND_TASK, [task_id, id])
    return None if values[0] is None else TaskGroup(**dict(zip(COLUMNS, values, strict=True))), bool(task_exists)


def insert_group(group: TaskGroup) -> bool:
    """Insert a new group. Returns False if another process has just inserted it."""
    values = f"({', '.join(COLUMNS)}) VALUES ({placeholders(COLUMNS)})"
    sql = f"INSERT INTO conductor_taskgroup {values} ON CONFLICT DO NOTHING"
    return execute(sql, [getattr(group, column) for column in COLUMNS]) == 1


def insert_check_message(writes: StatementBatch, group_id: str, now: int) -> None:
    """Insert a message to check the group. Messages of the same second are handled together."""
    due_at = (now // SECOND_MS + 2) * SECOND_MS
    columns = ('"to"', "subject", "facts", "sent_at", "due_at", "tries", "error")
    writes.insert(Message, columns, [[group_id, ABOUT_GROUP, "{}", now, due_at, 0, ""]])


def delete_check_messages(writes: StatementBatch, group_id: str) -> None:
    """Delete the messages to check the group."""
    writes.run(f"DELETE FROM conductor_message WHERE subject = '{ABOUT_GROUP}' AND \"to\" = %s", [group_id])


def delete_premature_messages(now: int) -> int:
    """Delete due messages about groups with open tasks, and return their number.

    The last task of such a group writes a message again.
    """
    premature = (
        f"SELECT m.id FROM conductor_message m WHERE m.subject = '{ABOUT_GROUP}' AND m.due_at <= %s "
        f"AND NOT (m.subject = 'publish') AND EXISTS ({UNRESOLVED}m.\"to\"){lock_clause('m', skip_locked=True)}"
    )
    # Skip the rows that the last task of a group is deleting: waiting for each other would be a deadlock.
    return execute(f"DELETE FROM conductor_message WHERE id IN ({premature})", [now])
