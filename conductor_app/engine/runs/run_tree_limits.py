"""Limits of a tree of runs: no run begins while the tree is terminated, and the number of open runs is bounded."""

from ... import conf
from ...models import Run
from ...store import run_tree

SAMPLE = 16
"""One of 16 runs counts the open runs of its tree, which takes about a millisecond for 10,000 runs."""


CHECKED_DEPTH = 3
"""The depth from which a beginning run looks at the runs above it. Shallower trees are terminated in time."""


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
    if depth >= CHECKED_DEPTH and run_tree.is_being_terminated(parent_id):
        return "A workflow above this one was terminated."
    limit = conf.max_open_descendants
    if _counts_descendants(run_id) and run_tree.has_open_descendants(root_id, limit):
        return f"Workflow {root_id} has more than {limit} open sub-workflows, the maximum (MAX_OPEN_DESCENDANTS)."
    return ""
