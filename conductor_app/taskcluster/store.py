"""Storage of standalone tasks, their groups, dependencies, claims and Pulse messages.

Two transactions that resolve the last two tasks of a group at the same time do not see each other's change. So a task
that is resolved while others are open writes a message to check the group again. Usually other tasks are still open at
that check, and one statement deletes all such messages.

A worker in quarantine claims no attempts.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, NoReturn

from django.db import IntegrityError

from ..core.errors import NotFound
from ..core.failure_grouping import build_of, fingerprint, normalize_message
from ..core.snapshot import NEVER, Attempt
from ..core.states import COMPLETED, PENDING, TASK
from ..db import fields
from ..db.fields import dumps, loads
from ..db.statements import execute, fetch, load_statements
from ..failures.models import Failure
from ..failures.store import COLUMNS as FAILURE_COLUMNS
from ..failures.store import FAILED_STATUSES, is_new_failure
from ..runs.models import ABOUT_GROUP, Message, PulseMessage, Task
from ..runs.models import Attempt as AttemptRow
from ..runs.models import Task as TaskRow
from ..runs.store.outbox import MESSAGES_SQL, delete_messages_to
from ..runs.store.rows import ATTEMPT_COLUMNS, ATTEMPT_UPDATED, attempt_update_values
from ..runs.store.writing import StaleRow, StatementBatch
from ..tasks.store import CLAIMS_SQL, mark_claimed
from .core.snapshot import Effect, PublishMessage, SatisfyDependency, StandaloneTask
from .models import Dependency, TaskGroup
from .models import StandaloneTask as StandaloneTaskRow

SECOND_MS = 1000
CHUNK = 300
MAX_MESSAGES = 1000
"""The maximum number of messages per task or group that are kept when no exchange is configured."""
ROWS_PER_STATEMENT = 5
"""The maximum number of messages per statement: psycopg does not cache statements with more than 50 parameters."""
STANDALONE = "STANDALONE"
"""The type of a task that belongs to no run."""
GROUP_COLUMNS = ("id", "scheduler_id", "created_at", "expires_at", "sealed_at")
TASK_COLUMNS = (
    "group_id", "queue", "deadline_at", "expires_at", "scheduler_id", "project_id", "priority", "retries",
    "retries_left", "wake_at", "grace_ms", "lease_ms", "accepts_failure", "ever_resolved", "revision", "tags", "routes",
)  # fmt: skip
ATTEMPT_READ_COLUMNS = (*ATTEMPT_COLUMNS, "cause")
ATTEMPT_INSERTED = (
    *ATTEMPT_READ_COLUMNS, "task_id", "name", "concurrent_limit", "rate_count", "rate_seconds", "publishes_start",
    "input", "output", "input_size", "output_size", "input_path", "output_path",
)  # fmt: skip
TASK_INSERTED = (
    "id", "ref", "iteration_path", "status", "seq", "created_at", "iteration", "step_state", "joined_by", "branch_head",
    "name", "type", "attempt_id", "loop_ref", "is_permissive",
)  # fmt: skip
FIRST_ATTEMPT_COLUMN = 1 + len(TASK_COLUMNS) + 6
CHANGEABLE_COLUMNS = ("priority", "retries_left", "wake_at", "ever_resolved")
"""The columns of a task that can change."""
STANDALONE_TASKS_SQL = load_statements(
    "taskcluster/standalone_tasks",
    task_columns=", ".join(f"s.{column}" for column in TASK_COLUMNS),
    attempt_columns=", ".join(f"a.{column}" for column in ATTEMPT_READ_COLUMNS),
)
GROUPS_SQL = load_statements("taskcluster/groups", about_group=ABOUT_GROUP)
STANDALONE_CLAIMS_SQL = load_statements(
    "taskcluster/standalone_claims",
    **CLAIMS_SQL.fragments
    | {
        "task_columns": ", ".join(f"s.{column}" for column in TASK_COLUMNS),
        "attempt_columns": ", ".join(f"a.{column}" for column in ATTEMPT_READ_COLUMNS),
    },
)


class RequiredTask(NamedTuple):
    """A task that other tasks wait for."""

    status: str
    expires_at: int

    def satisfies(self, accepts_failure: bool) -> bool:
        """Return True if the dependency is satisfied: the task is completed, or resolved if failures are accepted."""
        return self.status in TASK.final if accepts_failure else self.status == COMPLETED


class NewPulseMessage(NamedTuple):
    """A message that is not stored yet. At hundreds per second, a tuple is ten times cheaper than a model instance."""

    task_id: str
    group_id: str
    name: str
    key: str
    routes: Sequence[str]
    payload: dict[str, Any]
    sent_at: int
    due_at: int


def load_task(task_id: str) -> StandaloneTask:
    """Return the task, without a lock. One statement reads it, so that its counters and attempts are consistent."""
    rows = fetch(*STANDALONE_TASKS_SQL["load_standalone"].bind(task_id=task_id, ignored_dependency=""))
    return parse_standalone_task(rows) if rows else _raise_not_found(task_id)


def load_for_update(task_id: str, ignored_dependency: str = "") -> StandaloneTask:
    """Return the task, locked until the transaction ends.

    `ignored_dependency`: a required task that is about to satisfy the dependency on it.
    """
    rows = fetch(*STANDALONE_TASKS_SQL["lock_standalone"].bind(task_id=task_id))
    if not rows:
        _raise_not_found(task_id)
    # A separate query, so that it sees the attempts and dependents as they are after the wait for the lock.
    [row] = rows
    statement = STANDALONE_TASKS_SQL["load_task_state"]
    state_rows = fetch(*statement.bind(task_id=task_id, group_id=row[1], ignored_dependency=ignored_dependency))
    return parse_standalone_task([row + each for each in state_rows])


def load_definition(task_id: str) -> dict[str, Any]:
    rows = fetch(*STANDALONE_TASKS_SQL["load_task_definition"].bind(task_id=task_id))
    return loads(rows[0][0]) if rows else _raise_not_found(task_id)


def lock_row(task_id: str) -> None:
    """Lock the task against changes and claims until the transaction ends."""
    for name in ("lock_task_row", "lock_attempt_rows"):
        fetch(*STANDALONE_TASKS_SQL[name].bind(task_id=task_id))


def _raise_not_found(task_id: str) -> NoReturn:
    raise NotFound(f"Task {task_id} does not exist.")


def parse_standalone_task(rows: Sequence[tuple[Any, ...]]) -> StandaloneTask:
    """Return a task from its rows, one per attempt."""
    id, *values = rows[0][: len(TASK_COLUMNS) + 1]
    facts = dict(zip(TASK_COLUMNS, values, strict=True))
    facts |= {"tags": loads(facts["tags"]), "routes": tuple(loads(facts["routes"]))}
    facts |= {name: bool(facts[name]) for name in ("accepts_failure", "ever_resolved")}
    status, created_at, name, *truths = rows[0][len(TASK_COLUMNS) + 1 : FIRST_ATTEMPT_COLUMN]
    facts |= zip(("waits", "is_awaited", "group_has_unresolved"), map(bool, truths), strict=True)
    attempts = [row[FIRST_ATTEMPT_COLUMN:] for row in rows if row[FIRST_ATTEMPT_COLUMN] is not None]
    return StandaloneTask(
        id=id, status=status, created_at=created_at, name=name, attempts=tuple(map(_parse_attempt, attempts)), **facts
    )


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
    facts = {column: getattr(standalone, column) for column in TASK_COLUMNS}
    facts |= {"tags": dumps(dict(standalone.tags)), "routes": dumps(list(standalone.routes))}
    row = [standalone.id, *facts.values(), dumps(definition)]
    writes.insert(StandaloneTaskRow, ("task_id", *TASK_COLUMNS, "definition"), [row])
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
    write_standalone_failures(writes, before, after, now)
    insert_pulse_messages(writes, messages, repeats=all(isinstance(effect, PublishMessage) for effect in effects))
    try:
        writes.send()
    except IntegrityError as error:
        raise StaleRow from error


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


def _lock_pending_attempts(writes: StatementBatch, before: StandaloneTask, after: StandaloneTask) -> None:
    """Lock pending attempts. A claim locks attempts, not tasks, and must not start one that the decision blocks."""
    attempt = after.attempt
    if attempt is not None and attempt == before.attempt and attempt.status == PENDING:
        statement = STANDALONE_TASKS_SQL["lock_pending_attempt"]
        writes.run(*statement.bind(id=attempt.id, status=PENDING), expected=1)


def write_standalone_failures(writes: StatementBatch, before: StandaloneTask, after: StandaloneTask, now: int) -> None:
    """Write the failures of a standalone task. Tasks of one queue whose names differ only in numbers form one group."""
    previous = {attempt.id: attempt for attempt in before.attempts}
    failed = [
        _standalone_failure(attempt, after, now)
        for attempt in after.attempts
        if attempt.status in FAILED_STATUSES and is_new_failure(attempt, previous.get(attempt.id))
    ]
    if failed:
        writes.insert(Failure, FAILURE_COLUMNS, failed)


def _standalone_failure(attempt: Attempt, of: StandaloneTask, now: int) -> list[Any]:
    name = normalize_message(fields.strip_nul(of.name))[:512]
    return [
        fingerprint(of.queue, name, attempt.reason), "", attempt.id, of.queue, 0, name, attempt.reason,
        of.queue, attempt.worker, build_of(attempt.worker), now, of.id,
    ]  # fmt: skip


def delete_standalone_task(task_id: str) -> None:
    """Delete a standalone task with its attempts, dependencies and messages. The caller has locked it."""
    Dependency.objects.filter(task_id=task_id).delete()
    PulseMessage.objects.filter(task_id=task_id).delete()
    delete_messages_to(task_id)
    Task.objects.filter(pk=task_id, standalone__isnull=False).delete()


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


def lock_tasks(task_ids: Sequence[str]) -> dict[str, RequiredTask]:
    """Lock the existing ones of these tasks until the transaction ends, and return them by id.

    So the resolution of an open task, which needs the same lock, finds its new dependents.
    """
    ids, locked_tasks = sorted(task_ids), {}
    for chunk in _chunks(ids):
        locked = fetch(*GROUPS_SQL["lock_required"].bind(task_ids=chunk))
        # A separate query, so that it sees tasks that were resolved while the first one waited for the locks.
        statuses = dict(fetch(*GROUPS_SQL["load_statuses"].bind(task_ids=chunk)))
        for id, expires_at in locked:
            locked_tasks[id] = RequiredTask(statuses[id], expires_at)
    return locked_tasks


def _chunks(values: list[str]) -> Iterator[list[str]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def dependents_of(required_id: str, completed: bool, limit: int) -> list[str]:
    """Return the tasks with an unsatisfied dependency on this one, ordered by id.

    `completed`: True if the required task completed; otherwise only tasks that accept its failure.
    """
    statement = GROUPS_SQL["find_dependents" if completed else "find_dependents_accepting_failure"]
    rows = fetch(*statement.bind(required_id=required_id, limit=limit))
    return [id for (id,) in rows]


def insert_resolved_message(task_id: str, facts: dict[str, Any], now: int) -> int:
    statement = GROUPS_SQL["insert_resolved_message"]
    [(id,)] = fetch(*statement.bind(task_id=task_id, facts=dumps(facts), now=now))
    return id


def is_resolved(group_id: str) -> bool:
    """Return True if each task of the group has been resolved at least once."""
    return not fetch(*GROUPS_SQL["find_unresolved"].bind(group_id=group_id))


def load_group(id: str) -> TaskGroup | None:
    """Return the group, or None."""
    rows = fetch(*GROUPS_SQL["load_group"].bind(group_id=id))
    return TaskGroup(**dict(zip(GROUP_COLUMNS, rows[0], strict=True))) if rows else None


def load_group_for(task_id: str, id: str) -> tuple[TaskGroup | None, bool]:
    """Return the group of a new task, or None; and True if the task exists already."""
    [(task_exists, *values)] = fetch(*GROUPS_SQL["load_group_for"].bind(task_id=task_id, group_id=id))
    return None if values[0] is None else TaskGroup(**dict(zip(GROUP_COLUMNS, values, strict=True))), bool(task_exists)


def insert_group(group: TaskGroup) -> bool:
    """Insert a new group. Returns False if another process has just inserted it."""
    columns = {column: getattr(group, column) for column in GROUP_COLUMNS}
    return execute(*GROUPS_SQL["insert_group"].bind(**columns)) == 1


def insert_check_message(writes: StatementBatch, group_id: str, now: int) -> None:
    """Insert a message to check the group. Messages of the same second are handled together."""
    due_at = (now // SECOND_MS + 2) * SECOND_MS
    columns = ('"to"', "subject", "facts", "sent_at", "due_at", "tries", "error")
    writes.insert(Message, columns, [[group_id, ABOUT_GROUP, "{}", now, due_at, 0, ""]])


def delete_check_messages(writes: StatementBatch, group_id: str) -> None:
    writes.run(*GROUPS_SQL["delete_messages_about_group"].bind(group_id=group_id))


def delete_premature_messages(now: int) -> int:
    """Delete due messages about groups with open tasks, and return their number.

    The last task of such a group writes a message again.
    """
    return execute(*GROUPS_SQL["delete_premature_messages"].bind(now=now))


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


def delete_oldest(writes: StatementBatch, newest: NewPulseMessage) -> None:
    """Delete the oldest messages beyond the limit per task or group, because clients can repeat requests endlessly."""
    statement = MESSAGES_SQL["delete_oldest_pulse_messages"]
    writes.run(*statement.bind(task_id=newest.task_id, group_id=newest.group_id, kept=MAX_MESSAGES))


def delete_group_messages(group_ids: Collection[str]) -> None:
    """Delete the Pulse messages about groups themselves."""
    PulseMessage.objects.filter(group_id__in=group_ids, task_id="").delete()


def claim_due(now: int, held_until: int, count: int) -> list[int]:
    """Claim due messages until `held_until`, and return their ids. Locked rows are skipped.

    A message is claimed only after all earlier messages of its task are published, and a message about a group only
    after all earlier messages of the group's tasks.
    """
    statement = MESSAGES_SQL["claim_pulse_messages"]
    claimed = fetch(*statement.bind(now=now, held_until=held_until, count=count))
    return [id for (id,) in claimed]


def delete_messages(ids: Sequence[int]) -> None:
    """Delete messages that the exchange has received."""
    PulseMessage.objects.filter(pk__in=ids).delete()


def schedule_retry(id: int, tries: int, due_at: int, error: str) -> None:
    """Set when a message that could not be published is tried again."""
    PulseMessage.objects.filter(pk=id).update(tries=tries, due_at=due_at, error=error)
