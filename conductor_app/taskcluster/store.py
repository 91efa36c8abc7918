"""Load standalone tasks as snapshots, and write the decisions on them."""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from django.db import IntegrityError

from ..core.errors import NotFound
from ..core.snapshot import NEVER, Attempt
from ..core.standalone.effects import Effect, PublishMessage, SatisfyDependency
from ..core.standalone.snapshot import StandaloneTask
from ..core.states import PENDING
from ..models import Attempt as AttemptRow
from ..models import Dependency, PulseMessage
from ..models import StandaloneTask as StandaloneTaskRow
from ..models import Task as TaskRow
from ..models.fields import dumps, loads
from ..models.named_statements import load_statements
from . import failures
from .pulse_messages import NewPulseMessage, delete_oldest
from .rows import ATTEMPT_COLUMNS, ATTEMPT_UPDATED, attempt_update_values
from .statement_batch import StaleRow, StatementBatch
from .statements import fetch

COLUMNS = (
    "group_id", "queue", "deadline_at", "expires_at", "scheduler_id", "project_id", "priority", "retries",
    "retries_left", "wake_at", "grace_ms", "lease_ms", "accepts_failure", "ever_resolved", "revision", "tags", "routes",
)  # fmt: skip
ATTEMPT_READ_COLUMNS = (*ATTEMPT_COLUMNS, "cause")
STANDALONE_TASKS_SQL = load_statements(
    "standalone_tasks",
    task_columns=", ".join(f"s.{column}" for column in COLUMNS),
    attempt_columns=", ".join(f"a.{column}" for column in ATTEMPT_READ_COLUMNS),
)
ATTEMPT_INSERTED = (
    *ATTEMPT_READ_COLUMNS, "task_id", "name", "concurrent_limit", "rate_count", "rate_seconds", "publishes_start",
    "input", "output", "input_size", "output_size", "input_path", "output_path",
)  # fmt: skip
TASK_INSERTED = (
    "id", "ref", "iteration_path", "status", "seq", "created_at", "iteration", "step_state", "joined_by", "branch_head",
    "name", "type", "attempt_id", "loop_ref", "is_permissive",
)  # fmt: skip
STANDALONE = "STANDALONE"
"""The type of a task that belongs to no run."""


def load_for_update(task_id: str, ignored_dependency: str = "") -> StandaloneTask:
    """Return the task, locked until the transaction ends.

    `ignored_dependency`: a required task that is about to satisfy the dependency on it.

    Raises:
        NotFound: when there is no such task.
    """
    rows = fetch(*STANDALONE_TASKS_SQL["lock_standalone"].bind(task_id=task_id))
    if not rows:
        _raise_not_found(task_id)
    # A separate query, so that it sees the attempts and dependents as they are after the wait for the lock.
    [row] = rows
    statement = STANDALONE_TASKS_SQL["load_task_state"]
    state_rows = fetch(*statement.bind(task_id=task_id, group_id=row[1], ignored_dependency=ignored_dependency))
    return parse_standalone_task([row + each for each in state_rows])


def lock_row(task_id: str) -> None:
    """Lock the task against changes and claims until the transaction ends."""
    for name in ("lock_task_row", "lock_attempt_rows"):
        fetch(*STANDALONE_TASKS_SQL[name].bind(task_id=task_id))


def load_task(task_id: str) -> StandaloneTask:
    """Return the task, without a lock. One statement reads it, so that its counters and attempts are consistent.

    Raises:
        NotFound: when there is no such task.
    """
    rows = fetch(*STANDALONE_TASKS_SQL["load_standalone"].bind(task_id=task_id, ignored_dependency=""))
    return parse_standalone_task(rows) if rows else _raise_not_found(task_id)


def _raise_not_found(task_id: str) -> NoReturn:
    raise NotFound(f"Task {task_id} does not exist.")


def parse_standalone_task(rows: Sequence[tuple[Any, ...]]) -> StandaloneTask:
    """Return a task from its rows, one per attempt."""
    id, *values = rows[0][: len(COLUMNS) + 1]
    facts = dict(zip(COLUMNS, values, strict=True))
    facts |= {"tags": loads(facts["tags"]), "routes": tuple(loads(facts["routes"]))}
    facts |= {name: bool(facts[name]) for name in ("accepts_failure", "ever_resolved")}
    status, created_at, name, *truths = rows[0][len(COLUMNS) + 1 : FIRST_ATTEMPT_COLUMN]
    facts |= zip(("waits", "is_awaited", "group_has_unresolved"), map(bool, truths), strict=True)
    attempts = [row[FIRST_ATTEMPT_COLUMN:] for row in rows if row[FIRST_ATTEMPT_COLUMN] is not None]
    return StandaloneTask(
        id=id, status=status, created_at=created_at, name=name, attempts=tuple(map(_parse_attempt, attempts)), **facts
    )


FIRST_ATTEMPT_COLUMN = 1 + len(COLUMNS) + 6


def _parse_attempt(row: tuple[Any, ...]) -> Attempt:
    return Attempt(*row[:-1], cause=row[-1])  # type: ignore[misc]  # mypy takes the row to be endless


def insert_task(
    writes: StatementBatch, standalone: StandaloneTask, definition: dict[str, Any], required: Iterable[tuple[str, bool]]
) -> None:
    """Insert a new task without attempts. `required`: the ids of required tasks, each with True if it is satisfied."""
    newest = standalone.attempt.id if standalone.attempt else ""
    task = [
        standalone.id,
        "",
        "",
        standalone.status,
        0,
        standalone.created_at,
        0,
        "{}",
        "",
        "",
        standalone.name[:512],
        STANDALONE,
        newest,
        "",
        False,
    ]
    writes.insert(TaskRow, TASK_INSERTED, [task])
    facts = {column: getattr(standalone, column) for column in COLUMNS}
    facts |= {"tags": dumps(dict(standalone.tags)), "routes": dumps(list(standalone.routes))}
    row = [standalone.id, *facts.values(), dumps(definition)]
    writes.insert(StandaloneTaskRow, ("task_id", *COLUMNS, "definition"), [row])
    edges = [[standalone.id, id, is_satisfied, standalone.expires_at] for id, is_satisfied in required]
    if edges:
        writes.insert(Dependency, ("task_id", "required_id", "is_satisfied", "expires_at"), edges)


def save_task(
    writes: StatementBatch,
    before: StandaloneTask,
    effects: Sequence[Effect],
    after: StandaloneTask,
    messages: Sequence[NewPulseMessage],
    now: int,
    is_new: bool = False,
) -> None:
    """Write the effects of a decision, and its Pulse messages.

    `is_new`: True if `writes` contains the insertion of the task already.

    Raises:
        StaleRow: when another process has changed a row.
    """
    _write_attempts(writes, before, after)
    if messages:
        _lock_pending_attempts(writes, before, after)
    if not is_new:
        _write_task(writes, before, after)
    for effect in effects:
        if isinstance(effect, SatisfyDependency):
            statement = STANDALONE_TASKS_SQL["satisfy_dependency"]
            writes.run(*statement.bind(required_id=effect.required_id, task_id=after.id))
    failures.write_standalone_failures(writes, before, after, now)
    insert_pulse_messages(writes, messages, repeats=all(isinstance(effect, PublishMessage) for effect in effects))
    try:
        writes.send()
    except IntegrityError as error:
        raise StaleRow from error


def insert_pulse_messages(writes: StatementBatch, messages: Sequence[NewPulseMessage], repeats: bool = False) -> None:
    """Insert messages in order. `repeats`: True if clients can cause any number of them."""
    columns = ("task_id", "group_id", "name", "key", "routes", "payload", "sent_at", "due_at", "tries", "error")
    rows = [
        [n.task_id, n.group_id, n.name, n.key, dumps(n.routes), dumps(n.payload), n.sent_at, n.due_at, 0, ""]
        for n in messages
    ]
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        writes.insert(PulseMessage, columns, rows[start : start + ROWS_PER_STATEMENT])
    if repeats and messages and messages[-1].due_at == NEVER:
        delete_oldest(writes, messages[-1])


ROWS_PER_STATEMENT = 5
"""The maximum number of messages per statement: psycopg does not cache statements with more than 50 parameters."""


def _write_attempts(writes: StatementBatch, before: StandaloneTask, after: StandaloneTask) -> None:
    previous = {attempt.id: attempt for attempt in before.attempts}
    # Ended attempts first: a task has at most one open attempt, also between two statements.
    for attempt in after.attempts:
        old = previous.get(attempt.id)
        if old is not None and attempt != old:
            writes.update(AttemptRow, ATTEMPT_UPDATED, [(attempt.id, old.status, attempt_update_values(attempt))])
            if attempt.priority != old.priority:
                statement = STANDALONE_TASKS_SQL["set_attempt_priority"]
                writes.run(*statement.bind(priority=attempt.priority, id=attempt.id))
    fresh = [_insert_values(attempt, after) for attempt in after.attempts if attempt.id not in previous]
    if fresh:
        writes.insert(AttemptRow, ATTEMPT_INSERTED, fresh)


def _lock_pending_attempts(writes: StatementBatch, before: StandaloneTask, after: StandaloneTask) -> None:
    """Lock pending attempts. A claim locks attempts, not tasks, and must not start one that the decision blocks."""
    attempt = after.attempt
    if attempt is not None and attempt == before.attempt and attempt.status == PENDING:
        statement = STANDALONE_TASKS_SQL["lock_pending_attempt"]
        writes.run(*statement.bind(id=attempt.id, status=PENDING), expected=1)


def _insert_values(attempt: Attempt, standalone: StandaloneTask) -> list[Any]:
    values = [getattr(attempt, column) for column in ATTEMPT_READ_COLUMNS]
    return [*values, standalone.id, standalone.queue, 0, 0, 1, False, "{}", "{}", 2, 2, "", ""]


def _write_task(writes: StatementBatch, before: StandaloneTask, after: StandaloneTask) -> None:
    newest, old = (standalone.attempt.id if standalone.attempt else "" for standalone in (after, before))
    if (after.status, newest) != (before.status, old):
        statement = STANDALONE_TASKS_SQL["set_task_status"]
        params = statement.bind(status=after.status, attempt_id=newest, id=after.id, expected=before.status)
        writes.run(*params, expected=1)
    changed = {
        column: value for column in CHANGEABLE_COLUMNS if (value := getattr(after, column)) != getattr(before, column)
    }
    if changed:
        sets = ", ".join(f"{column} = %s" for column in changed)
        sql = (
            f"UPDATE conductor_standalonetask SET {sets}, revision = revision + 1 WHERE task_id = %s AND revision = %s"
        )
        writes.run(sql, [*changed.values(), after.id, before.revision], expected=1)


CHANGEABLE_COLUMNS = ("priority", "retries_left", "wake_at", "ever_resolved")
"""The columns of a task that can change."""


def load_definition(task_id: str) -> dict[str, Any]:
    """Return the definition of a task.

    Raises:
        NotFound: when there is no such task.
    """
    rows = fetch(*STANDALONE_TASKS_SQL["load_task_definition"].bind(task_id=task_id))
    return loads(rows[0][0]) if rows else _raise_not_found(task_id)
