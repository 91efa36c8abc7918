"""Runs as snapshots: a whole run, or the tasks that a change of some attempts can affect; rate limits and inboxes.

Also trees of runs: their open waits, and the limits that stop a tree from growing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from ...core import decision_context as waits
from ...core.definition import Definition, Key, Step, possible_keys
from ...core.document.reading import layout_branch, layout_steps
from ...core.errors import NotFound
from ...core.masking import MARK
from ...core.primitives import JsonValue, fast_replace
from ...core.snapshot import NEVER, NO_SHARE, UNKNOWN, Run, Share, Task
from ...core.states import RUN
from ...db.fields import dumps, loads, loads_decrypted
from ...db.statements import execute, fetch, fetch_together, load_statements
from ...definitions import store as definitions
from ...settings import conf
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
SEQ = TASK_COLUMNS.index("seq")
RUN_WIDTH = len(RUN_COLUMNS) + 4
RUNS_SQL = load_statements(
    "runs/store/runs",
    run_columns=", ".join(f"r.{column}" for column in RUN_COLUMNS),
    task_and_attempt=", ".join(
        [*(f"t.{column}" for column in TASK_COLUMNS), *(f"a.{column}" for column in ATTEMPT_COLUMNS)]
    ),
    small_payload_chars=str(SMALL_PAYLOAD_CHARS),
)
MAX_RUNS = 1000
"""The maximum number of runs to read. Later children are read when earlier ones have ended."""
SAMPLE = 16
"""One of 16 runs counts the open runs of its tree, which takes about a millisecond for 10,000 runs."""
CHECKED_DEPTH = 3
"""The depth from which a beginning run looks at the runs above it. Shallower trees are terminated in time."""
TREE_SQL = load_statements("runs/store/tree")


def load_for_update(run_id: str, around: Iterable[str] | None = None, is_locked: bool = True) -> Run:
    """Return the run, locked until the transaction ends.

    `around`: ids of attempts, or None for the whole run. With ids, the snapshot contains their tasks, the enclosing
    loops, the joins that wait for them, and skipped tasks. It needs no other tasks, because steps after an open task
    cannot have been entered yet.
    """
    if around is None:
        return _load_whole(run_id, is_locked)
    return _load_neighborhood(run_id, list(around), is_locked)


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
    task_rows = task_rows if loaded_keys else []
    if has_skips:
        # Control may not have reached skipped tasks yet.
        task_rows += fetch_tasks(run.id, " AND t.status = 'SKIPPED'")
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
            tasks = _parse_tasks(run, sorted(task_rows, key=itemgetter(SEQ)))
            # Each task has a sequence number of its own, so a short run is often known to be whole.
            return fast_replace(run, tasks=tasks, is_whole=len(tasks) == run.next_seq - 1)


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


def fetch_tasks(run_id: str, ending: str, params: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of tasks of a run. `ending`: SQL after the condition on the run."""
    sql, run_params = RUNS_SQL["load_tasks"].bind(run_id=run_id)
    return fetch(f"{sql}{ending}", [*run_params, *params])


def load_tasks_at(run: Run, keys: Iterable[Key]) -> dict[Key, Task]:
    return load_tasks(run, _load_rows_at(run.id, keys))


def load_tasks(run: Run, rows: list[tuple[Any, ...]]) -> dict[Key, Task]:
    """Return the tasks of these rows. The head of a dynamic branch is loaded too, because it has the document."""
    keys = {_parse_key(row) for row in rows}
    heads = {branch_head for row in rows if (branch_head := parse_branch_head(row[len(TASK_COLUMNS) - 1]))} - keys
    tasks = _parse_tasks(run, [*rows, *_load_rows_at(run.id, heads)])
    return {key: task for key, task in tasks.items() if key in keys}


def _parse_key(row: tuple[Any, ...]) -> Key:
    return Key(row[1], parse_iteration_path(row[2]))


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
        "fairness": Share(**fairness) if (fairness := loads(facts["fairness"])) else NO_SHARE,
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


def set_timer(run_id: str, wake_at: int) -> None:
    """Set the timer of the locked run, in epoch milliseconds."""
    execute(*RUNS_SQL["set_timer"].bind(wake_at=wake_at, run_id=run_id))


def set_input(run_id: str, value: JsonValue) -> None:
    RunRow.objects.filter(pk=run_id).update(input=value, input_size=len(dumps(value) or ""), input_path="")


def clear_idempotency_key(run_id: str) -> None:
    """Let another run use the idempotency key of a run."""
    RunRow.objects.filter(pk=run_id).update(idempotency_key=None)


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
    rows = fetch(*TREE_SQL["load_run_status"].bind(run_id=run_id))
    if not rows:
        raise NotFound(f"No such workflow found by id: {run_id}")
    return rows[0][0]


def load_run_tree(run_id: str) -> RunTree:
    found_ids, waits, level = [run_id], [], [run_id]
    while level and len(found_ids) < MAX_RUNS:
        chunks = [TREE_SQL["find_open_waits"].bind(run_ids=chunk) for chunk in _chunks(level)]
        rows = [row for statement in chunks for row in fetch(*statement)]
        waits += [OpenWait(run, attempt, ends_at != NEVER) for run, kind, attempt, child, ends_at in rows if not child]
        level = [child for *_, child, _ in rows if child]
        found_ids += level
    return RunTree(found_ids, waits)


def find_ended_task(run_ids: Collection[str], names: Collection[str]) -> OpenWait | None:
    """Return an ended task of these runs with one of the names: a reference, with or without its iteration."""
    refs = sorted({ref for name in names for ref, _path in possible_keys(name)})
    for chunk in _chunks(list(run_ids)):
        rows = fetch(*TREE_SQL["find_ended_tasks"].bind(run_ids=chunk, refs=refs))
        for run_id, attempt_id, ref, iteration_path in rows:
            if ref in names or "__".join([ref, *iteration_path.split(".")]) in names:
                return OpenWait(run_id, attempt_id)
    return None


def mark_watched(run_ids: Collection[str], name: str, until: int, now: int) -> set[str]:
    """Mark the runs as watched until a time. Returns their notification topics; a run keeps an unexpired topic."""
    names: set[str] = set()
    for chunk in _chunks(list(run_ids)):
        rows = fetch(*TREE_SQL["mark_watched"].bind(run_ids=chunk, name=name, until=until, now=now))
        names |= {name for (name,) in rows}
    return names


def _chunks(values: list[str]) -> Iterator[list[str]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def is_checked(run_id: str, depth: int) -> bool:
    """Return True if a run at this depth looks at its tree before it begins."""
    return depth >= CHECKED_DEPTH or _counts_descendants(run_id)


def _counts_descendants(run_id: str) -> bool:
    return bool(conf.max_open_descendants) and int(run_id[-2:], 16) % SAMPLE == 0


def reason_not_to_begin(run_id: str) -> str:
    """Return why a run must not begin, or an empty text.

    A run that starts itself without end grows as fast as its termination follows it from level to level. Therefore a
    beginning run checks whether a run above it is being terminated.
    """
    row = RunRow.objects.filter(pk=run_id).values_list("parent_id", "root_id", "depth").first()
    if row is None or not row[0]:
        return ""
    parent_id, root_id, depth = row
    if depth >= CHECKED_DEPTH and is_being_terminated(parent_id):
        return "A workflow above this one was terminated."
    limit = conf.max_open_descendants
    if _counts_descendants(run_id) and has_open_descendants(root_id, limit):
        return f"Workflow {root_id} has more than {limit} open sub-workflows, the maximum (MAX_OPEN_DESCENDANTS)."
    return ""


def is_being_terminated(run_id: str) -> bool:
    """Return True if the termination of a run above this one is on its way to it.

    It is delivered from level to level: the run above this one has ended, or an open run further up has a message.
    A run that was retried alone has an ended parent as well, but no such message.
    """
    open_ids: list[str] = []
    while run_id:
        rows = fetch(*TREE_SQL["load_run_status"].bind(run_id=run_id))
        if not rows or rows[0][0] not in RUN.open:
            break
        open_ids.append(run_id)
        run_id = rows[0][1]
    if not open_ids:
        return bool(run_id)
    return bool(fetch(*TREE_SQL["find_termination"].bind(run_ids=open_ids)))


def has_open_descendants(root_id: str, count: int) -> bool:
    """Return True if more than `count` open runs are below the run."""
    [(found,)] = fetch(*TREE_SQL["count_open_descendants"].bind(root_id=root_id, limit=count + 1))
    return bool(found > count)
