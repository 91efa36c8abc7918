"""Load the open waits of a run and its descendants, level by level, over the index of open tasks."""

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ..core.definition import possible_keys
from ..core.errors import NotFound
from ..core.snapshot import NEVER
from ..core.states import RUN
from ..models.budgets import RunLine
from .statements import fetch, placeholders

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
CHUNK = 300


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
