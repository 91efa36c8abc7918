"""Storage of a decision: its effects become a few statements, which are sent and checked together.

A transaction that meets rows changed by another process is repeated.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from django.db import DataError, IntegrityError, models

from ...core.caching import CacheRunOutput, CacheTaskResult
from ...core.child_runs import new_child_run
from ...core.decide import Decision, RevisionInfo
from ...core.effects import (
    AttachChild,
    AwaitWebhook,
    CreateTask,
    DeleteTasks,
    Effect,
    PruneIteration,
    PublishEvent,
    SendMessage,
    SnapshotBuilder,
    StartRun,
)
from ...core.errors import Busy, shorten_reason
from ...core.events import INTERNAL, STATE, STATUS, TASK, is_internal
from ...core.fairness import share_of_task
from ...core.masking import mask_encrypt, masked_names
from ...core.primitives import fast_replace
from ...core.snapshot import UNKNOWN, Attempt, Run, Task
from ...core.states import SKIPPED
from ...core.step_types.worker_tasks import EventStep
from ...db.database import connection, transaction
from ...db.fields import dumps, strip_nul
from ...db.statements import (
    MAX_BATCH_ROWS,
    StatementResult,
    commit_batch,
    execute_batch,
    insert_statements,
    load_statements,
    supports_commit_in_batch,
    update_statements,
)
from ...db.transient_errors import FaultTolerance
from ...failures import store as failures
from ...payloads.store import PayloadPlacement
from ...settings import conf
from ...utils import process_state
from ...utils.process_state import Wiring
from ..models import LISTENER, PUBLISH, TASK_LISTENER, CachedResult, HistoryEntry, Message, TaskLog
from ..models import Attempt as AttemptRow
from ..models import Run as RunRow
from ..models import Task as TaskRow
from . import rows

DIVISION_BY_ZERO = "22012"
REQUIRE_COUNT = "WITH changed AS ({sql} RETURNING 1) SELECT 1 / CAST(COUNT(*) = {expected} AS integer) FROM changed"
"""A statement that fails if it does not change the expected number of rows, because a commit follows it at once."""
COPY_MIN_ROWS = 50
"""Larger inserts use COPY on PostgreSQL, because a statement with many parameters is slow to parse."""
MAX_STALE_ATTEMPTS = 5
"""Attempts that meet rows changed by another process before the request is refused as Busy."""
UNANNOUNCED_DELAY_MS = 1000
MAX_HISTORY_LINES = 200
"""The maximum number of effects per history entry. The last line of a longer entry counts the rest."""
EVENT_QUEUE = EventStep.type
MESSAGE_COLUMNS = ('"to"', "subject", "facts", "sent_at", "due_at", "tries", "error")
RUN_INSERTED = (
    "id", "name", "version", "resolved_definition_id", "status", "reason", "correlation_id", "priority",
    "created_at", "updated_at", "ended_at", "last_retried_at", "wake_at", "revision", "next_seq",
    "has_skips", "parent_id", "parent_attempt_id", "root_id", "depth", "starter_id",
    "failed_attempt_id", "failed_refs", "failed_names", "domains", "limit_key", "is_held", "started_by", "event",
    "schedule", "idempotency_key", "request_id", "watched_as", "watched_until", "inbox",
    "input", "output", "variables", "input_size", "output_size", "variables_size",
    "input_path", "output_path", "debug",
)  # fmt: skip
RUN_RARELY_INSERTED: dict[str, Callable[[Run], str | None]] = {
    "traceparent": lambda run: run.traceparent,
    "fairness": rows.fairness_text,
}
ATTEMPT_UPDATE_COLUMNS = (
    (False, rows.ATTEMPT_UPDATED),
    (True, (*rows.ATTEMPT_UPDATED, "output", "output_size", "output_path")),
)
WRITING_SQL = load_statements("runs/store/writing")
Seal = Callable[[str], str]
Result = TypeVar("Result")


class StaleRow(Exception):
    """Another process changed a row between reading and writing; the decision must be repeated."""


class FinalQuery(Protocol):
    """A query at the end of a transaction, after all writes. It may itself write rows that it returns."""

    @property
    def statement(self) -> tuple[str, Sequence[Any]]:
        """Return the query for a database that can commit in the same round trip."""

    def fetch(self) -> Sequence[Any]:
        """Execute the query where the commit follows later. Returns its rows."""

    def receive(self, rows: Sequence[Any]) -> Collection[str]:
        """Store the rows. It is called after the commit. Returns the ids of the attempts that the query has claimed."""


class StatementBatch:
    """Statements that do not depend on one another's results.

    `ends_transaction`: nothing is written after this batch, so PostgreSQL gets the COMMIT in the same round trip.
    `final_queries`: what is executed after all statements. `claimed`: the ids of the attempts that they have claimed.
    """

    def __init__(self, placement: PayloadPlacement | None = None, *, ends_transaction: bool = False) -> None:
        self.placement = placement or PayloadPlacement()
        self.ends_transaction = ends_transaction
        self.statements: list[tuple[str, Sequence[Any], int | None]] = []
        self.copies: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = []
        self.messages: dict[int, Sequence[Message]] = {}
        self.final_queries: list[FinalQuery] = []
        self.claimed: set[str] = set()

    def insert(self, model: type[models.Model], columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) > COPY_MIN_ROWS and connection.vendor == "postgresql":
            self.copies.append((model._meta.db_table, columns, rows))
        else:
            self.statements += [(sql, params, None) for sql, params in insert_statements(model, columns, rows)]

    def update(
        self, model: type[models.Model], columns: Sequence[str], rows: Sequence[tuple[str, str, Sequence[Any]]]
    ) -> None:
        """Add an update. `rows`: for each row its id, its expected status, and the new values."""
        self.statements += update_statements(model, columns, rows)

    def insert_messages(self, messages: Sequence[Message]) -> None:
        """Add an insert of outbox messages. `send` sets their ids."""
        for start in range(0, len(messages), MAX_BATCH_ROWS):
            chunk = messages[start : start + MAX_BATCH_ROWS]
            values = [[each.to, each.subject, dumps(each.facts), each.sent_at, each.due_at, 0, ""] for each in chunk]
            [(sql, params)] = insert_statements(Message, MESSAGE_COLUMNS, values)
            self.messages[len(self.statements)] = chunk
            self.run(f"{sql} RETURNING id", params)

    def append(self, batch: "StatementBatch") -> None:
        """Add the statements of another batch with the same placement."""
        first = len(self.statements)
        self.messages |= {first + position: messages for position, messages in batch.messages.items()}
        self.statements += batch.statements
        self.copies += batch.copies

    def append_with_payloads(self, batch: "StatementBatch") -> None:
        """Add the statements of another batch, with those for its payloads.

        Raises:
            PayloadsTooLarge: when payloads of that batch must be stored first.
        """
        batch.statements += batch.placement.statements()
        self.append(batch)

    def run(self, sql: str, params: Sequence[Any], expected: int | None = None) -> None:
        """Add a statement. `expected`: the number of rows that it must change, or None for any."""
        self.statements.append((sql, params, expected))

    def send(self) -> None:
        """Execute all statements.

        Raises:
            StaleRow: when another process has changed a row
            PayloadsTooLarge: before any write, when payloads must be stored first.
        """
        self.statements += self.placement.statements()
        if self.ends_transaction and not self.copies and supports_commit_in_batch():
            self._send_and_commit()
            return
        # One round trip instead of about six.
        results = execute_batch([(sql, params) for sql, params, _ in self.statements])
        for (_, _, expected), (count, _) in zip(self.statements, results, strict=True):
            if expected is not None and count != expected:
                raise StaleRow
        for copy in self.copies:
            _copy_rows(*copy)
        self._set_message_ids(results)
        for query in self.final_queries:
            transaction.on_commit(partial(self._receive, query, query.fetch()))

    def _send_and_commit(self) -> None:
        statements = [
            (sql if expected is None else REQUIRE_COUNT.format(sql=sql, expected=expected), params)
            for sql, params, expected in self.statements
        ]
        try:
            results, found = commit_batch(statements, [query.statement for query in self.final_queries])
        except DataError as error:
            if getattr(error.__cause__, "sqlstate", "") == DIVISION_BY_ZERO:
                raise StaleRow from error
            raise
        self._set_message_ids(results)
        for query, found_rows in zip(self.final_queries, found, strict=True):
            self._receive(query, found_rows)

    def _receive(self, query: FinalQuery, found: Sequence[Any]) -> None:
        self.claimed.update(query.receive(found))

    def _set_message_ids(self, results: Sequence[StatementResult]) -> None:
        for position, messages in self.messages.items():
            for message, id in zip(messages, results[position].ids, strict=True):
                message.pk = id


def _copy_rows(table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def repeat_while_stale(attempt: Callable[[], Result], **subject: str) -> Result:
    """Call `attempt` until it meets no row that another process changed, and return its result.

    Raises:
        Busy: when each of MAX_STALE_ATTEMPTS attempts met such a row. `subject` names the object in the error.
    """
    faults = FaultTolerance()
    for _ in range(MAX_STALE_ATTEMPTS):
        try:
            return faults.repeat(attempt)
        except StaleRow:
            continue
    raise Busy(**subject)


@dataclass(frozen=True, slots=True)
class RunOrigin:
    """Facts about the start of a run that its row stores and decisions do not need.

    `masked`: names whose values are masked in its input, besides those of its definition.
    """

    started_by: str
    event: str = ""
    schedule: str = ""
    idempotency_key: str | None = None
    request_id: str | None = None
    masked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PendingNotifications:
    """Notifications to send after the commit: the queue of each new attempt with its id, and messages to deliver.

    The id is empty for a queue that is announced for another reason, such as a free slot of a limit.
    """

    queues: tuple[tuple[str, str], ...]
    messages: tuple[Message, ...]


def send(writes: StatementBatch) -> None:
    """Execute the statements.

    Raises:
        StaleRow: when another process has changed a row
        PayloadsTooLarge: when payloads must be stored in blob storage first.
    """
    try:
        writes.send()
    except IntegrityError as error:
        # Another process has written a row with the same key; this decision was made on an older state.
        raise StaleRow from error


def add_changes(
    writes: StatementBatch,
    before: Run,
    decision: Decision,
    revision: RevisionInfo,
    origin: RunOrigin | None = None,
) -> PendingNotifications:
    """Add the statements that write the effects of a decision, after those in `writes`. `origin`: the run is new.

    Raises:
        PayloadOverLimit: when a payload exceeds the maximum size.
    """
    effects, after, now = list(decision.effects), decision.after, revision.at
    if origin is not None:
        insert_run(writes, after, origin, now)
    attempts = _touched_attempts(before, effects)
    # Deletions come first: the same decision may create deleted tasks again, with the same reference and id.
    before = _delete_tasks(writes, before, effects)
    _write_attempts(writes, before, attempts, after)
    _write_tasks(writes, before, after)
    _prune_iterations(writes, before, effects)
    _empty_inbox(writes, before, after)
    if origin is None:
        _write_run(writes, before, after, now)
    _write_history(writes, before, effects, revision)
    failures.write_failures(writes, before, attempts, after, now)
    insert_started_runs(writes, effects, after, now)
    attach_children(writes, effects, after)
    insert_webhook_waits(writes, effects, after, now)
    write_cached_results(writes, effects)
    messages = insert_messages(writes, effects, after, now)
    # Messages to other systems are sent by the built-in workers, like the attempts of their queues.
    event_queues = tuple(("", EVENT_QUEUE) for each in messages if each.subject == PUBLISH)
    internal_messages = tuple(each for each in messages if each.subject != PUBLISH)
    return PendingNotifications(_affected_queues(before, attempts, now) + event_queues, internal_messages)


def _touched_attempts(before: Run, effects: list[Effect]) -> dict[str, tuple[Attempt, Task]]:
    """Return the last state of every attempt that an effect changed. Earlier attempts are not in the snapshot."""
    builder, touched = SnapshotBuilder(before), {}
    for effect in effects:
        effect.apply(builder)
        key = getattr(effect, "key", None) or (effect.task.key if hasattr(effect, "task") else None)
        if key is not None and key in builder.tasks:
            task = builder.tasks[key]
            touched[task.attempt.id] = (task.attempt, task)
    return touched


def _delete_tasks(writes: StatementBatch, before: Run, effects: list[Effect]) -> Run:
    """Delete the rows of deleted tasks, and return the snapshot without them.

    All attempts of a task and their logs are deleted too. A task that is entered again under its id loses only the
    attempt that is rewritten and later ones; the log of that attempt stays.
    """
    gone = {key: before.tasks[key] for effect in effects if isinstance(effect, DeleteTasks) for key in effect.keys}
    if not gone:
        return before
    deleted_ids = {task.id for task in gone.values()}
    recreated = [effect.task for effect in effects if isinstance(effect, CreateTask) and effect.task.id in deleted_ids]
    for task in recreated:
        _delete_rewritten_rows(writes, task)
    recreated_ids = {task.id for task in recreated}
    ids = [task.id for task in gone.values() if task.id not in recreated_ids]
    for start in range(0, len(ids), MAX_BATCH_ROWS):
        chunk = ids[start : start + MAX_BATCH_ROWS]
        for name in ("delete_logs_of_tasks", "delete_attempts_of_tasks", "delete_tasks"):
            writes.run(*WRITING_SQL[name].bind(task_ids=chunk))
    return fast_replace(before, tasks={key: task for key, task in before.tasks.items() if key not in gone})


def _delete_rewritten_rows(writes: StatementBatch, task: Task) -> None:
    """Delete the rows that are rewritten under the same ids: the task, this attempt and later ones."""
    for name in ("delete_logs_after", "delete_attempts_from"):
        writes.run(*WRITING_SQL[name].bind(task_id=task.id, number=task.attempt.number))
    writes.run(*WRITING_SQL["delete_tasks"].bind(task_ids=[task.id]))


def _write_attempts(
    writes: StatementBatch, before: Run, touched: Mapping[str, tuple[Attempt, Task]], after: Run
) -> None:
    previous = {task.attempt.id: task.attempt for task in before.tasks.values()}
    existing = {id: pair for id, pair in touched.items() if _still_exists(pair[1], after)}
    changed = [
        (attempt, previous[id]) for id, (attempt, _) in existing.items() if id in previous and attempt != previous[id]
    ]
    reopened = [(new, old) for new, old in changed if new.number != old.number]
    if reopened:
        values = [
            (old.id, old.status, _rewrite_values(new, existing[old.id][1], writes, after)) for new, old in reopened
        ]
        writes.update(AttemptRow, rows.ATTEMPT_REWRITTEN, values)
        changed = [(new, old) for new, old in changed if new.number == old.number]
    # Ended attempts first: a task has at most one open attempt, also between two statements.
    for has_output, columns in ATTEMPT_UPDATE_COLUMNS:
        same = [(new, old) for new, old in changed if _payload_changed(new, old, "output") == has_output]
        values = [(old.id, old.status, _update_values(new, has_output, writes, after)) for new, old in same]
        if values:
            writes.update(AttemptRow, columns, values)
    for new, _old in (pair for pair in changed if _payload_changed(*pair, "input")):
        input, statement = writes.placement.of_task(new, after, "input"), WRITING_SQL["set_attempt_input"]
        writes.run(*statement.bind(input=input.text, size=input.size, path=input.path, id=new.id))
    for new, old in changed:
        if (new.queue, new.priority) != (old.queue, old.priority):
            statement = WRITING_SQL["set_attempt_queue"]
            writes.run(*statement.bind(queue=new.queue, domain=new.domain, priority=new.priority, id=new.id))
    for new in [new for new, _old in reopened] + [new for new, old in changed if new.queue and not old.queue]:
        _set_share(writes, before, existing[new.id][1], after)
    fresh = [pair for id, pair in existing.items() if id not in previous]
    if fresh:
        _insert_attempts(writes, fresh, after)


def _insert_attempts(writes: StatementBatch, fresh: Sequence[tuple[Attempt, Task]], run: Run) -> None:
    """Add the inserts of attempts. Those without a fairness key have the defaults of its columns."""
    columns: tuple[str, ...] = rows.ATTEMPT_INSERTED
    values = [_insert_values(attempt, task, writes, run) for attempt, task in fresh]
    if run.fairness.key or any("fairness" in task.step_state for _attempt, task in fresh):
        columns = (*columns, *rows.ATTEMPT_SHARE)
        values = [[*each, *share_of_task(task, run)] for each, (_attempt, task) in zip(values, fresh, strict=True)]
    writes.insert(AttemptRow, columns, values)


def _set_share(writes: StatementBatch, before: Run, task: Task, after: Run) -> None:
    """Add the update of an attempt whose row was written before its task had its fairness key."""
    old, share = before.tasks.get(task.key), share_of_task(task, after)
    if old is None or share_of_task(old, before) != share:
        writes.run(*WRITING_SQL["set_attempt_share"].bind(key=share.key, weight=share.weight, id=task.attempt.id))


def _still_exists(task: Task, after: Run) -> bool:
    """Return True if the task exists after the decision: neither deleted, nor deleted and created again."""
    current = after.tasks.get(task.key)
    return current is not None and current.id == task.id


def _payload_changed(new: Attempt | Run, old: Attempt | Run, part: str) -> bool:
    value = getattr(new, part)
    return value is not UNKNOWN and value is not getattr(old, part)


def _insert_values(attempt: Attempt, task: Task, writes: StatementBatch, run: Run) -> list[Any]:
    input, output = (writes.placement.of_task(attempt, run, part) for part in ("input", "output"))
    return rows.attempt_insert_values(attempt, task, run, input, output)


def _rewrite_values(attempt: Attempt, task: Task, writes: StatementBatch, run: Run) -> list[Any]:
    pairs = zip(rows.ATTEMPT_INSERTED, _insert_values(attempt, task, writes, run), strict=True)
    return [value for column, value in pairs if column in rows.ATTEMPT_REWRITTEN]


def _update_values(attempt: Attempt, has_output: bool, writes: StatementBatch, run: Run) -> list[Any]:
    output = writes.placement.of_task(attempt, run, "output") if has_output else ()
    return [*rows.attempt_update_values(attempt), *output]


def _write_tasks(writes: StatementBatch, before: Run, after: Run) -> None:
    touched = [(task, _task_before(before, task)) for key, task in after.tasks.items() if key in after.touched]
    fresh = [
        rows.task_insert_values(task, after, writes.placement.step_state(task, after))
        for task, old in touched
        if old is None
    ]
    if fresh:
        writes.insert(TaskRow, rows.TASK_INSERTED, fresh)
    changed = [
        (old.id, old.status, rows.task_update_values(task, writes.placement.step_state(task, after)))
        for task, old in touched
        if old is not None and rows.has_task_changed(task, old)
    ]
    if changed:
        writes.update(TaskRow, rows.TASK_UPDATED, changed)
    if after.definition is not before.definition:
        for task, old in touched:
            if old is not None and rows.step_columns(task) != rows.step_columns(old):
                joined_by, loop_ref, is_permissive = rows.step_columns(task)
                columns = {"joined_by": joined_by, "loop_ref": loop_ref, "is_permissive": is_permissive}
                writes.run(*WRITING_SQL["set_task_step"].bind(**columns, id=task.id))


def _task_before(before: Run, task: Task) -> Task | None:
    """Return the previous state of the task, or None if another task has replaced it."""
    previous = before.tasks.get(task.key)
    return previous if previous is not None and previous.id == task.id else None


def _prune_iterations(writes: StatementBatch, before: Run, effects: list[Effect]) -> None:
    for effect in effects:
        if isinstance(effect, PruneIteration):
            loop = before.definition.steps.get(effect.loop.ref)
            inside = sorted(loop.inside) if loop else []
            iteration_path = rows.format_iteration_path((*effect.loop.iteration_path, effect.iteration))
            place = {"run_id": before.id, "iteration_path": iteration_path, "deeper_paths": f"{iteration_path}.%"}
            for name in ("delete_attempts_of_iteration", "delete_tasks_of_iteration"):
                writes.run(*WRITING_SQL[name].bind(**place, loop_refs=[effect.loop.ref, *inside]))


def _empty_inbox(writes: StatementBatch, before: Run, after: Run) -> None:
    """Delete consumed messages, and all messages at the end of the run."""
    if before.inbox and not after.is_open:
        writes.run(*WRITING_SQL["delete_inbox"].bind(run_id=before.id))
    elif after.inbox_taken:
        writes.run(*WRITING_SQL["delete_taken_messages"].bind(run_id=before.id, up_to=after.inbox_taken))


def _write_run(writes: StatementBatch, before: Run, after: Run, now: int) -> None:
    columns, values = list(rows.RUN_UPDATED), rows.run_update_values(after)
    values[columns.index("updated_at")] = now
    for column, value_of in rows.RUN_RARELY_UPDATED.items():
        if value_of(after) != value_of(before):
            columns.append(column)
            values.append(value_of(after))
    for part in ("input", "output"):
        if _payload_changed(after, before, part):
            columns += [part, f"{part}_size", f"{part}_path"]
            values += writes.placement.of_run(after, part)
    if _payload_changed(after, before, "variables"):
        text = writes.placement.variables(after)
        columns += ["variables", "variables_size"]
        values += [text, len(text)]
    if any(after.tasks[key].status == SKIPPED for key in after.touched if key in after.tasks):
        # Skipped tasks are loaded with every change from now on: control may reach them later.
        columns.append("has_skips")
        values.append(True)
    sets = ", ".join(f"{column} = %s" for column in columns)
    sql = f"UPDATE conductor_run SET {sets}, revision = revision + 1 WHERE id = %s AND revision = %s"
    writes.run(sql, [*values, before.id, before.revision], expected=1)


def _write_history(writes: StatementBatch, before: Run, effects: list[Effect], revision: RevisionInfo) -> None:
    by, reason = strip_nul(revision.by)[:255], shorten_reason(strip_nul(revision.reason))
    lines = [effect.to_history() for effect in effects]
    entries = (
        lines
        if len(lines) <= MAX_HISTORY_LINES
        else [*lines[:MAX_HISTORY_LINES], {"effect": "…", "more": len(lines) - MAX_HISTORY_LINES}]
    )
    writes.insert(
        HistoryEntry,
        ("run_id", "revision", "at", "by", "reason", "effects"),
        [[before.id, before.revision + 1, revision.at, by, reason, dumps(entries)]],
    )


def insert_run(writes: StatementBatch, run: Run, origin: RunOrigin, now: int) -> None:
    """Insert a new run in the state after its first decision."""
    _insert_runs(writes, [run], [_run_columns(writes, run, origin, now, revision=1)])


def _insert_runs(writes: StatementBatch, runs: Sequence[Run], values: Sequence[list[Any]]) -> None:
    """Add the insert of runs. The columns of a trace and of a fairness key are written only if a run has one."""
    columns: tuple[str, ...] = RUN_INSERTED
    for column, value_of in RUN_RARELY_INSERTED.items():
        if any(found := [value_of(run) for run in runs]):
            columns, values = (*columns, column), [[*each, more] for each, more in zip(values, found, strict=True)]
    writes.insert(RunRow, columns, values)


def _run_columns(writes: StatementBatch, run: Run, origin: RunOrigin, now: int, *, revision: int) -> list[Any]:
    placement, variables = writes.placement, writes.placement.variables(run)
    input, output = placement.of_run(run, "input", origin.masked), placement.of_run(run, "output")
    has_skips = any(run.tasks[key].status == SKIPPED for key in run.touched if key in run.tasks)
    return [
        run.id, run.definition.name, run.definition.version, run.definition.hash, run.status,
        strip_nul(run.reason), strip_nul(run.correlation_id)[:512], run.priority, run.created_at, now,
        run.ended_at, run.last_retried_at, run.wake_at, revision, run.next_seq,
        has_skips, run.parent_id, run.parent_attempt_id, run.root_id, run.depth, run.starter_id,
        run.failed_attempt_id, dumps(list(run.failed_refs)), dumps(list(run.failed_names)), dumps(dict(run.domains)),
        run.limit_key, run.is_held, strip_nul(origin.started_by)[:255], strip_nul(origin.event)[:255],
        origin.schedule, origin.idempotency_key, origin.request_id, run.watched_as, run.watched_until, run.inbox,
        input.text, output.text, variables, input.size, output.size, len(variables),
        input.path, output.path, rows.debug_text(run),
    ]  # fmt: skip


def insert_started_runs(writes: StatementBatch, effects: Iterable[Effect], run: Run, now: int) -> None:
    starts = [effect for effect in effects if isinstance(effect, StartRun) and not effect.has_begun]
    if starts:
        for freed in filter(None, (effect.releases_key_of for effect in starts)):
            writes.run(*WRITING_SQL["free_idempotency_key"].bind(id=freed))
        children = [new_child_run(effect, run, now) for effect in starts]
        values = [
            _run_columns(writes, child, origin_of_start(effect, run), now, revision=0)
            for effect, child in zip(starts, children, strict=True)
        ]
        _insert_runs(writes, children, values)


def origin_of_start(effect: StartRun, run: Run) -> RunOrigin:
    # A failure workflow gets the whole input of this run, so the values that this definition masks stay masked.
    masked = masked_names(run.definition) if effect.is_failure_workflow else frozenset()
    return RunOrigin("engine", idempotency_key=effect.idempotency_key or None, masked=masked)


def attach_children(writes: StatementBatch, effects: Iterable[Effect], run: Run) -> None:
    """Make this run the parent of existing runs, so that they report their end to it."""
    for effect in effects:
        if isinstance(effect, AttachChild):
            statement = WRITING_SQL["attach_child"]
            writes.run(*statement.bind(parent_id=run.id, attempt_id=effect.attempt_id, id=effect.run_id))


def insert_webhook_waits(writes: StatementBatch, effects: Iterable[Effect], run: Run, now: int) -> None:
    """Write the webhook conditions of attempts. A rerun replaces the condition under the same id."""
    name, version = run.definition.name, run.definition.version
    for effect in effects:
        if isinstance(effect, AwaitWebhook):
            paths = dumps(list(effect.paths)) or ""
            digest = hashlib.sha256(paths.encode()).hexdigest()
            writes.run(*WRITING_SQL["insert_webhook_paths"].bind(workflow=name, digest=digest, paths=paths))
            condition = {"attempt_id": effect.attempt_id, "digest": effect.digest}
            writes.run(*WRITING_SQL["save_webhook_wait"].bind(**condition, workflow=name, version=version, now=now))


def write_cached_results(writes: StatementBatch, effects: Iterable[Effect]) -> None:
    """Write the results that later tasks and runs can reuse."""
    for effect in effects:
        if isinstance(effect, CacheTaskResult):
            key = {"name": effect.name[:255], "digest": effect.digest, "until": effect.until}
            writes.run(*WRITING_SQL["save_task_result"].bind(**key, attempt_id=effect.attempt_id))
        elif isinstance(effect, CacheRunOutput):
            key = {"name": effect.name[:255], "digest": effect.digest, "until": effect.until}
            writes.run(*WRITING_SQL["save_run_result"].bind(**key, run_id=effect.run_id))


def insert_messages(writes: StatementBatch, effects: Iterable[Effect], run: Run, now: int) -> list[Message]:
    """Insert the messages of these effects, including those that make started runs begin."""
    senders = [effect for effect in effects if isinstance(effect, StartRun | AttachChild | SendMessage | PublishEvent)]
    rows = (_message_row(effect, run, now, writes.placement.seal) for effect in senders)
    messages = [row for row in rows if row is not None]
    writes.insert_messages(messages)
    return messages


def _message_row(
    effect: StartRun | AttachChild | SendMessage | PublishEvent, run: Run, now: int, seal: Seal
) -> Message | None:
    if isinstance(effect, PublishEvent):
        return event_message(effect, run, now, seal)
    if isinstance(effect, AttachChild):
        # The child may have ended already: the handler of this message checks that.
        effect = SendMessage(run.id, "child_ended", {"attempt": effect.attempt_id, "child": effect.run_id})
    if isinstance(effect, SendMessage):
        # `asked` is an operator's command for the parent. Which names the parent's definition masks is unknown here.
        facts = mask_encrypt(effect.facts, frozenset(("asked",)), seal)
        return Message(to=effect.to, subject=effect.subject, facts=facts, sent_at=now, due_at=now)
    if effect.has_begun:
        return None
    facts = {"about": run.id} if effect.is_failure_workflow else {}
    facts |= {"is_limited": True} if effect.definition.document.get("rateLimitConfig") else {}
    return Message(to=effect.id, subject="begin", facts=facts, sent_at=now, due_at=now)


def event_message(effect: PublishEvent, run: Run, now: int, seal: Seal) -> Message | None:
    """Return the message of a published event; None if neither the definition nor the settings name a sink."""
    sink = effect.sink
    if effect.about == STATUS and not sink and not (sink := LISTENER if conf.workflow_status_listener_url else ""):
        return None
    if effect.about == TASK:
        sink = TASK_LISTENER
    if effect.about == STATE and conf.state_change_sink != INTERNAL:
        sink = conf.state_change_sink
    if is_internal(sink):
        payload = mask_encrypt(effect.payload, masked_names(run.definition), seal)
        facts = {"event": sink, "id": effect.id, "payload": payload}
        return Message(subject="event", facts=facts, sent_at=now, due_at=now)
    facts = {"sink": sink, "id": effect.id, "payload": effect.payload}
    return Message(to=sink[:64], subject=PUBLISH, facts=facts, sent_at=now, due_at=now)


def _affected_queues(before: Run, touched: Mapping[str, tuple[Attempt, Task]], now: int) -> tuple[tuple[str, str], ...]:
    """Return the id and the queue of each new attempt, and the queues whose limit may have a free slot again.

    Attempts that become visible later are omitted, because waiting polls look for them every second.
    """
    previous = {task.attempt.id: task.attempt for task in before.tasks.values()}
    queues = []
    for id, (attempt, task) in touched.items():
        is_freed = id in previous and previous[id].is_open and not attempt.is_open and task.step.policy.concurrent_limit
        is_new = attempt.status == "PENDING" and attempt.visible_at < now + UNANNOUNCED_DELAY_MS
        if attempt.queue and (is_new or is_freed):
            queues.append((id if is_new else "", attempt.queue))
    return tuple(queues)


DELETERS: Wiring[tuple[Callable[[str], None], ...]] = process_state.wiring(())
"""What deletes the rows of other slices that belong to a deleted run."""


def on_delete_run(delete: Callable[[str], None]) -> None:
    """Call a function with the id of each deleted run, in the transaction that deletes it."""
    DELETERS.value += (delete,)


def delete_run(run_id: str) -> None:
    """Delete a run with its tasks, attempts, logs, calls of models and messages. The caller has locked it."""
    TaskLog.objects.filter(attempt_id__in=AttemptRow.objects.filter(run_id=run_id).values("id")).delete()
    for delete_more in DELETERS.value:
        delete_more(run_id)
    Message.objects.filter(to=run_id).delete()
    RunRow.objects.filter(pk=run_id).delete()


def mark_as_traced(run_id: str, ended_at: int) -> None:
    """Save that the spans of a run are exported until its end."""
    RunRow.objects.filter(pk=run_id).update(traced_at=ended_at)


def delete_expired_results(now: int) -> None:
    """Delete the cached results whose lifetime is over."""
    CachedResult.objects.filter(expires_at__lte=now).delete()
