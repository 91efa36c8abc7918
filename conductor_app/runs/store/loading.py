"""Loading of runs: whole runs, trees and inboxes.

Loading of runs: a whole run as a snapshot, or the tasks that a change of some attempts can affect.

Load the open waits of a run and its descendants, level by level, over the index of open tasks.

Reads and writes of the inbox of a run.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db.models import QuerySet

from ...ai.store import RunLine
from ...core import decision_context as waits
from ...core.data_requests import InboxBatch, InboxMessages
from ...core.definition import Definition, Key, Step, possible_keys
from ...core.document.reading import layout_branch, layout_steps
from ...core.errors import NotFound
from ...core.masking import MARK
from ...core.primitives import fast_replace
from ...core.snapshot import NEVER, UNKNOWN, Run, Task
from ...core.states import RUN
from ...core.step_types.waiting import PullWorkflowMessages
from ...db.fields import dumps, loads, loads_decrypted
from ...db.named_statements import load_statements
from ...db.statements import execute, fetch, fetch_together, placeholders, serialize
from ...definitions import store as definitions
from ...settings import conf
from ..models import InboxMessage
from ..models import Run as RunRow
from .rows import (
    ATTEMPT_COLUMNS,
    RUN_COLUMNS,
    TASK_COLUMNS,
    format_iteration_path,
    parse_attempt,
    parse_branch_head,
    parse_iteration_path,
    parse_task,
)

CHUNK = 300
"""The maximum number of keys per query: SQLite parses at most 1000 conditions."""
SMALL_PAYLOAD_CHARS = 4096
"""The maximum length of an input and of variables that are read with their run: the next expression often uses them."""

RUN_WIDTH = len(RUN_COLUMNS) + 4
RUNS_SQL = load_statements(
    "runs/store/runs",
    run_columns=", ".join(f"r.{column}" for column in RUN_COLUMNS),
    task_and_attempt=", ".join(
        [*(f"t.{column}" for column in TASK_COLUMNS), *(f"a.{column}" for column in ATTEMPT_COLUMNS)]
    ),
    small_payload_chars=str(SMALL_PAYLOAD_CHARS),
)


def load_for_update(run_id: str, around: Iterable[str] | None = None, is_locked: bool = True) -> Run:
    """Return the run, locked until the transaction ends.

    `around`: ids of attempts, or None for the whole run. With ids, the snapshot contains their tasks, the enclosing
    loops, the joins that wait for them, and skipped tasks. It needs no other tasks, because steps after an open task
    cannot have been entered yet.

    Raises:
        NotFound: when there is no such run.
    """
    if around is None:
        return _load_whole(run_id, is_locked)
    return _load_neighborhood(run_id, list(around), is_locked)


def set_timer(run_id: str, wake_at: int) -> None:
    """Set the timer of the locked run, in epoch milliseconds."""
    execute(*RUNS_SQL["set_timer"].bind(wake_at=wake_at, run_id=run_id))


def load_run(run_id: str) -> Run:
    """Return the whole run, without a lock."""
    return _load_whole(run_id, is_locked=False)


def _load_whole(run_id: str, is_locked: bool) -> Run:
    rows = fetch(*RUNS_SQL["lock_run" if is_locked else "load_run"].bind(run_id=run_id))
    if not rows:
        raise NotFound(f"No such workflow found by id: {run_id}")
    run = _parse_run(rows[0])
    if not run.has_begun:
        return run
    return fast_replace(run, tasks=_parse_tasks(run, fetch_tasks(run_id, " ORDER BY t.seq")))


def lock_available(attempts: Mapping[str, str]) -> dict[str, Run]:
    """Lock the runs that no other transaction has locked, in one round trip on PostgreSQL.

    `attempts`: an attempt id by run id. Returns the snapshots of `load_for_update` around these attempts, by run id.
    """
    # One statement for all runs would need a plan that is good for one attempt and for many.
    statement = RUNS_SQL["lock_available_neighborhood"]
    rows_of_runs = fetch_together(
        [statement.bind(attempt_id=attempt_id, run_id=run_id) for run_id, attempt_id in attempts.items()]
    )
    return {run_id: _complete_neighborhood(rows) for run_id, rows in zip(attempts, rows_of_runs, strict=True) if rows}


def _load_neighborhood(run_id: str, attempt_ids: list[str], is_locked: bool) -> Run:
    statement = RUNS_SQL["lock_neighborhood" if is_locked else "load_neighborhood"]
    rows = fetch(*statement.bind(attempt_ids=attempt_ids, run_id=run_id))
    if not rows:
        _load_whole(run_id, is_locked=False)
        raise NotFound(f"Task not found for taskId: {', '.join(attempt_ids)}")
    return _complete_neighborhood(rows)


def _complete_neighborhood(rows: list[tuple[Any, ...]]) -> Run:
    """Return the snapshot of a run from the rows of its neighborhood, with the other tasks that it needs."""
    *columns, has_skips, input, variables, revision = rows[0][:RUN_WIDTH]
    run = fast_replace(_parse_run((*columns, has_skips, input, variables)), is_whole=False)
    task_rows = list({row[0]: row for row in (row[RUN_WIDTH:] for row in rows)}.values())
    needed_keys = {key for row in task_rows for key in _dependent_keys(run.definition, row)}
    # A transaction that waited for the lock sees the current run, but its tasks as they were before the wait.
    loaded_keys = {_parse_key(row) for row in task_rows} if revision == run.revision else set()
    task_rows = [row for row in task_rows if loaded_keys] + (_load_skipped(run.id) if has_skips else [])
    while True:
        task_rows += _load_rows_at(run.id, needed_keys - loaded_keys)
        loaded_keys |= needed_keys
        # Only the document in the head of a dynamic branch says which joins wait for its tasks.
        tasks = _parse_tasks(run, task_rows)
        needed_keys = {
            branch_head for row in task_rows if (branch_head := parse_branch_head(row[len(TASK_COLUMNS) - 1]))
        }
        needed_keys |= {key for task in tasks.values() for key in _branch_dependent_keys(run, task)}
        if not needed_keys - loaded_keys:
            tasks = _parse_tasks(run, sorted(task_rows, key=_seq_of))
            # Each task has a sequence number of its own, so a short run is often known to be whole.
            return fast_replace(run, tasks=tasks, is_whole=len(tasks) == run.next_seq - 1)


def _parse_key(row: tuple[Any, ...]) -> Key:
    return Key(row[1], parse_iteration_path(row[2]))


def fetch_tasks(run_id: str, ending: str, params: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of tasks of a run. `ending`: SQL after the condition on the run."""
    sql, run_params = RUNS_SQL["load_tasks"].bind(run_id=run_id)
    return fetch(f"{sql}{ending}", [*run_params, *params])


def load_tasks_at(run: Run, keys: Iterable[Key]) -> dict[Key, Task]:
    """Return the existing tasks of the keys."""
    return load_tasks(run, _load_rows_at(run.id, keys))


def load_tasks(run: Run, rows: list[tuple[Any, ...]]) -> dict[Key, Task]:
    """Return the tasks of these rows. The head of a dynamic branch is loaded too, because it has the document."""
    keys = {_parse_key(row) for row in rows}
    heads = {branch_head for row in rows if (branch_head := parse_branch_head(row[len(TASK_COLUMNS) - 1]))} - keys
    tasks = _parse_tasks(run, [*rows, *_load_rows_at(run.id, heads)])
    return {key: task for key, task in tasks.items() if key in keys}


def _seq_of(row: tuple[Any, ...]) -> int:
    return row[TASK_COLUMNS.index("seq")]


def _load_skipped(run_id: str) -> list[tuple[Any, ...]]:
    """Return the rows of skipped tasks, which control may not have reached yet."""
    return fetch_tasks(run_id, " AND t.status = 'SKIPPED'")


def _load_rows_at(run_id: str, keys: Iterable[Key]) -> list[tuple[Any, ...]]:
    rows, pairs = [], [(key.ref, format_iteration_path(key.iteration_path)) for key in keys]
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        conditions = " OR ".join(["(t.ref = %s AND t.iteration_path = %s)"] * len(chunk))
        rows += fetch_tasks(run_id, f" AND ({conditions})", [value for pair in chunk for value in pair])
    return rows


def _dependent_keys(definition: Definition, row: tuple[Any, ...]) -> Iterable[Key]:
    """Yield the keys of a task and of the tasks that may wait for it, by its row and the definition."""
    key, (joined_by, branch_head) = _parse_key(row), row[len(TASK_COLUMNS) - 2 : len(TASK_COLUMNS)]
    yield key
    if head := parse_branch_head(branch_head):
        yield head
    if joined_by:
        yield Key(joined_by, key.iteration_path)
    ref = key.ref if definition.step(key.ref) else joined_by
    yield from waits.dependent_keys(waits.dependents_of(definition, ref), definition.step, key.iteration_path)


def _branch_dependent_keys(run: Run, task: Task) -> Iterable[Key]:
    """Yield the keys of tasks that may wait for a task of a dynamic branch."""
    if not task.branch_head:
        return
    if task.joined_by:
        yield Key(task.joined_by, task.key.iteration_path)

    def find(ref: str) -> Step | None:
        return run.step(ref, task)

    yield from waits.dependent_keys(waits.dependents_among(find, task.key.ref), find, task.key.iteration_path)


def _parse_run(row: tuple[Any, ...]) -> Run:
    *columns, _has_skips, input, variables = row
    facts = dict(zip(RUN_COLUMNS, columns, strict=True))
    definition = definitions.load_definition(facts.pop("resolved_definition_id"))
    facts |= {
        "failed_refs": tuple(loads(facts["failed_refs"])),
        "failed_names": tuple(loads(facts["failed_names"])),
        "domains": loads(facts["domains"]),
        "is_held": bool(facts["is_held"]),
        "debug": loads(facts["debug"]) or {},
    }
    return Run(
        definition=definition,
        **facts,
        input=_small_payload(input),
        variables=_small_payload(variables),
    )


def _small_payload(text: str | None) -> Any:
    """Return a small payload that was loaded with its row. A payload with encrypted parts is loaded on request."""
    return UNKNOWN if text is None or MARK in text else loads(text)


def _parse_tasks(run: Run, rows: list[tuple[Any, ...]]) -> dict[Key, Task]:
    """Return tasks by key. The steps of a dynamic branch come from the document in its head."""
    split = len(TASK_COLUMNS)
    branches = _parse_branches([row[:split] for row in rows])
    tasks = {}
    for row in rows:
        columns, attempt = row[:split], parse_attempt(row[split:])
        branch_steps = branches.get(columns[-1], {})
        step = run.definition.step(columns[1]) or branch_steps.get(columns[1])
        if step is not None:
            task = parse_task(columns, step, attempt, branch_steps)
            tasks[task.key] = task
    return tasks


def _parse_branches(rows: list[tuple[Any, ...]]) -> dict[str, dict[str, Step]]:
    """Return the steps of each dynamic branch by its head, in the format of the `branch_head` column."""
    branches = {}
    for _id, ref, iteration_path, *_others, step_state, joined_by, branch_head in rows:
        if branch_head and branch_head == f"{ref}@{iteration_path}":
            branches[branch_head] = _parse_branch(step_state, joined_by)
    return branches


@lru_cache(maxsize=4000)
def _parse_branch(step_state: str, joined_by: str) -> dict[str, Step]:
    state = loads_decrypted(step_state)
    steps = layout_steps([state["document"]], loops=tuple(state["loops"]), is_authored=False)
    return layout_branch(steps, state["document"]["taskReferenceName"], joined_by)


def set_input(run_id: str, value: Any) -> None:
    """Replace the input of a run that has not started."""
    RunRow.objects.filter(pk=run_id).update(input=value, input_size=len(dumps(value) or ""), input_path="")


def set_rate_limit(run_id: str, key: str, is_held: bool) -> None:
    """Set the rate limit key of a run that has not started, and whether the limit holds the run back."""
    RunRow.objects.filter(pk=run_id, next_seq=1).update(limit_key=key, is_held=is_held)


def is_rate_limit_reached(name: str, key: str, limit: int, but: str = "") -> bool:
    """Return True if a run that starts now must wait. Starts with the same key are serialized until the commit.

    `but`: a run that is not counted.
    """
    serialize(f"runs:{name}:{key}")
    return count_released_runs(name, key, but) >= limit or held_runs(name, key).exists()


def held_runs(name: str, key: str) -> QuerySet[RunRow]:
    """Return the runs that a rate limit holds, earliest first. They start before new runs."""
    return RunRow.objects.open().filter(name=name, limit_key=key, is_held=True).order_by("created_at", "id")


def count_released_runs(name: str, key: str, but: str = "") -> int:
    """Return the number of open runs with a rate limit key that the limit does not hold."""
    return RunRow.objects.open().filter(name=name, limit_key=key, is_held=False).exclude(pk=but).count()


def release_idempotency_key(run_id: str) -> None:
    """Let another run use the idempotency key of a run."""
    RunRow.objects.filter(pk=run_id).update(idempotency_key=None)


# Must equal the condition of the index; otherwise the database does not use it.
TASK_IS_OPEN = "t.status IN ('ACTIVE', 'BLOCKED')"
RUN_IS_OPEN = "status IN ('PAUSED', 'RUNNING') AND NOT (root_id = '')"
RUNS_ABOVE = (
    "WITH RECURSIVE line (id, name, started_by, parent_id, root_id, place) AS ("
    "SELECT id, name, started_by, parent_id, root_id, 0 FROM conductor_run WHERE id = %s UNION ALL "
    "SELECT above.id, above.name, above.started_by, above.parent_id, above.root_id, line.place + 1 "
    "FROM line JOIN conductor_run above ON above.id = line.parent_id) "
    "SELECT id, name, started_by, root_id FROM line ORDER BY place"
)
MAX_RUNS = 1000
"""The maximum number of runs to read. Later children are read when earlier ones have ended."""


class OpenWait(NamedTuple):
    """A task with its newest attempt."""

    run_id: str
    attempt_id: str
    is_timed: bool = False


class RunTree(NamedTuple):
    """A run with its open descendants, nearest first, and their open WAIT tasks."""

    run_ids: list[str]
    waits: list[OpenWait]


def status_of(run_id: str) -> str:
    """Return the status of a run.

    Raises:
        NotFound: when there is no such run.
    """
    rows = fetch("SELECT status FROM conductor_run WHERE id = %s", [run_id])
    if not rows:
        raise NotFound(f"No such workflow found by id: {run_id}")
    return rows[0][0]


def is_being_terminated(run_id: str) -> bool:
    """Return True if the termination of a run above this one is on its way to it.

    It is delivered from level to level: the run above this one has ended, or an open run further up has a message.
    A run that was retried alone has an ended parent as well, but no such message.
    """
    open_ids: list[str] = []
    while run_id:
        rows = fetch("SELECT status, parent_id FROM conductor_run WHERE id = %s", [run_id])
        if not rows or rows[0][0] not in RUN.open:
            break
        open_ids.append(run_id)
        run_id = rows[0][1]
    if not open_ids:
        return bool(run_id)
    sql = (
        f"SELECT 1 FROM conductor_message WHERE subject = 'terminate' AND \"to\" IN ({placeholders(open_ids)}) LIMIT 1"
    )
    return bool(fetch(sql, open_ids))


def load_run_line(run_id: str) -> RunLine:
    """Return a run with those above it; an empty line if there is no such run."""
    rows = fetch(RUNS_ABOVE, [run_id])
    if not rows:
        return RunLine()
    return RunLine(tuple((id, name) for id, name, *_ in rows), rows[0][3] or rows[0][0], rows[-1][2])


def has_open_descendants(root_id: str, count: int) -> bool:
    """Return True if more than `count` open runs are below the run."""
    sql = f"SELECT count(*) FROM (SELECT 1 FROM conductor_run WHERE root_id = %s AND {RUN_IS_OPEN} LIMIT %s) AS found"
    return bool(fetch(sql, [root_id, count + 1])[0][0] > count)


def load_run_tree(run_id: str) -> RunTree:
    """Return the run and its open descendants."""
    found_ids, waits, level = [run_id], [], [run_id]
    while level and len(found_ids) < MAX_RUNS:
        rows = [row for chunk in _chunks(level) for row in _open_waits(chunk)]
        waits += [OpenWait(run, attempt, ends_at != NEVER) for run, kind, attempt, child, ends_at in rows if not child]
        level = [child for *_, child, _ in rows if child]
        found_ids += level
    return RunTree(found_ids, waits)


def _open_waits(run_ids: Collection[str]) -> list[tuple[Any, ...]]:
    """Return the open WAIT and YIELD tasks of these runs, and the open tasks that wait for a child."""
    return fetch(
        "SELECT t.run_id, t.type, a.id, a.child_id, a.ends_at FROM conductor_task t "
        "JOIN conductor_attempt a ON a.id = t.attempt_id "
        f"WHERE t.run_id IN ({placeholders(list(run_ids))}) AND {TASK_IS_OPEN} "
        "AND (t.type IN ('WAIT', 'YIELD') OR a.child_id <> '') AND a.status = 'LEASED' ORDER BY t.run_id, t.seq",
        list(run_ids),
    )


def find_ended_task(run_ids: Collection[str], names: Collection[str]) -> OpenWait | None:
    """Return an ended task of these runs with one of the names: a reference, with or without its iteration."""
    refs = sorted({ref for name in names for ref, _path in possible_keys(name)})
    for chunk in _chunks(list(run_ids)):
        rows = fetch(
            "SELECT t.run_id, t.attempt_id, t.ref, t.iteration_path FROM conductor_task t "
            f"WHERE t.run_id IN ({placeholders(chunk)}) AND t.ref IN ({placeholders(refs)}) AND NOT {TASK_IS_OPEN} "
            "ORDER BY t.run_id, t.seq",
            [*chunk, *refs],
        )
        for run_id, attempt_id, ref, iteration_path in rows:
            if ref in names or "__".join([ref, *iteration_path.split(".")]) in names:
                return OpenWait(run_id, attempt_id)
    return None


def mark_watched(run_ids: Collection[str], name: str, until: int, now: int) -> set[str]:
    """Mark the runs as watched until a time. Returns their notification topics; a run keeps an unexpired topic."""
    names: set[str] = set()
    for chunk in _chunks(list(run_ids)):
        rows = fetch(
            "UPDATE conductor_run SET watched_as = CASE WHEN watched_until > %s THEN watched_as ELSE %s END, "
            "watched_until = CASE WHEN watched_until > %s THEN watched_until ELSE %s END "
            f"WHERE id IN ({placeholders(chunk)}) RETURNING watched_as",
            [now, name, until, until, *chunk],
        )
        names |= {name for (name,) in rows}
    return names


def _chunks(values: list[str]) -> Iterator[list[str]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


WAITING_TYPE = PullWorkflowMessages.type
MESSAGE_LIFETIME_MS = 86_400_000
"""The lifetime of a message in the inbox, in milliseconds (execution §10.8)."""


def oldest_messages(run: Run, request: InboxMessages, now: int) -> InboxBatch:
    """Return the oldest valid messages that fit into the output of one task, and the number of messages after them."""
    rows = fetch(
        "SELECT number, id, received_at, payload FROM conductor_inboxmessage WHERE run_id = %s AND number > %s "
        "AND received_at > %s ORDER BY number LIMIT %s",
        [run.id, request.after, now - MESSAGE_LIFETIME_MS, request.count],
    )
    rows = _within_output_limit(rows)
    up_to = rows[-1][0] if rows else _last_message_id(run.id)
    [(remaining,)] = fetch(
        "SELECT COUNT(*) FROM conductor_inboxmessage WHERE run_id = %s AND number > %s", [run.id, up_to]
    )
    return InboxBatch(tuple(_message_document(run, *row[1:]) for row in rows), up_to, remaining)


def _within_output_limit(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    size = 0
    for place, row in enumerate(rows):
        size += len(row[3])
        if place and size > conf.task_payload_max_bytes // 2:
            return rows[:place]
    return rows


def _last_message_id(run_id: str) -> int:
    return fetch("SELECT COALESCE(MAX(number), 0) FROM conductor_inboxmessage WHERE run_id = %s", [run_id])[0][0]


def _message_document(run: Run, id: str, received_at: int, payload: str) -> dict[str, Any]:
    at = datetime.fromtimestamp(received_at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"id": id, "workflowId": run.id, "payload": loads_decrypted(payload), "receivedAt": at}


def waiting_attempts(run_id: str) -> list[str]:
    """Return the attempts of the run that wait for messages."""
    rows = fetch(
        "SELECT attempt_id FROM conductor_task WHERE run_id = %s AND status = 'ACTIVE' AND type = %s ORDER BY seq",
        [run_id, WAITING_TYPE],
    )
    return [id for (id,) in rows]


def delete_expired(run_id: str, now: int) -> int:
    """Delete expired messages. Returns the number of remaining messages."""
    execute(
        "DELETE FROM conductor_inboxmessage WHERE run_id = %s AND received_at <= %s",
        [run_id, now - MESSAGE_LIFETIME_MS],
    )
    return fetch("SELECT COUNT(*) FROM conductor_inboxmessage WHERE run_id = %s", [run_id])[0][0]


def add_message(run_id: str, id: str, payload: Any, now: int, count: int) -> None:
    """Add a message to the inbox of a locked run. `count`: the number of messages including this one."""
    InboxMessage.objects.create(id=id, run_id=run_id, received_at=now, payload=payload)
    RunRow.objects.filter(pk=run_id).update(inbox=count)
