"""Trees of runs: their open waits, and the limits that stop a tree from growing."""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ...core.definition import possible_keys
from ...core.errors import NotFound
from ...core.snapshot import NEVER
from ...core.states import RUN
from ...db.statements import fetch, placeholders
from ...settings import conf
from ..models import Run
from .loading import CHUNK

MAX_RUNS = 1000
"""The maximum number of runs to read. Later children are read when earlier ones have ended."""
SAMPLE = 16
"""One of 16 runs counts the open runs of its tree, which takes about a millisecond for 10,000 runs."""
CHECKED_DEPTH = 3
"""The depth from which a beginning run looks at the runs above it. Shallower trees are terminated in time."""
# Must equal the condition of the index; otherwise the database does not use it.
TASK_IS_OPEN = "t.status IN ('ACTIVE', 'BLOCKED')"
RUN_IS_OPEN = "status IN ('PAUSED', 'RUNNING') AND NOT (root_id = '')"


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
    row = Run.objects.filter(pk=run_id).values_list("parent_id", "root_id", "depth").first()
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


def has_open_descendants(root_id: str, count: int) -> bool:
    """Return True if more than `count` open runs are below the run."""
    sql = f"SELECT count(*) FROM (SELECT 1 FROM conductor_run WHERE root_id = %s AND {RUN_IS_OPEN} LIMIT %s) AS found"
    return bool(fetch(sql, [root_id, count + 1])[0][0] > count)
