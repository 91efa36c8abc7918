"""Trees of runs: their open waits, and the limits that stop a tree from growing."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ...core.definition import possible_keys
from ...core.errors import NotFound
from ...core.snapshot import NEVER
from ...core.states import RUN
from ...db.statements import fetch, load_statements
from ...settings import conf
from ..models import Run
from .loading import CHUNK

MAX_RUNS = 1000
"""The maximum number of runs to read. Later children are read when earlier ones have ended."""
SAMPLE = 16
"""One of 16 runs counts the open runs of its tree, which takes about a millisecond for 10,000 runs."""
CHECKED_DEPTH = 3
"""The depth from which a beginning run looks at the runs above it. Shallower trees are terminated in time."""
TREE_SQL = load_statements("runs/store/tree")


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
