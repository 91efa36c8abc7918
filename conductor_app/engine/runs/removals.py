"""Commands that remove runs: alone, with their descendants, or after terminating them."""

from ...models import Run
from .run_commands import remove_run, terminate_run

GENERATION = 500
"""Number of runs whose children are read in one query."""


def terminate_and_remove(
    run_id: str, by: str, reason: str = "", *, archive: bool = True, cascade: bool = False
) -> None:
    """Terminate a run and then remove it, in two transactions: if the second one fails, the run stays terminated.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is not open.
    """
    terminate_run(run_id, by, reason)
    remove_with_descendants(run_id, by, reason, archive=archive, cascade=cascade)


def remove_with_descendants(
    run_id: str, by: str, reason: str = "", *, archive: bool = True, cascade: bool = False
) -> None:
    """Remove a run. `cascade`: remove its descendants before it, each in its own transaction, youngest first.

    Without `cascade` its children stay. Open children are terminated if the run is open too; otherwise they continue
    without a parent.

    Raises:
        NotFound: when there is no such run.
        Invalid: when `archive` is set and the run is open.
    """
    is_open = Run.objects.open().filter(pk=run_id).exists()
    if cascade and not (is_open and archive):
        why = reason or f"Removed together with workflow {run_id}."
        if is_open:
            terminate_run(run_id, by, why)
        for id in reversed(descendants(run_id)):
            remove_run(id, by, why, archive=False)
    remove_run(run_id, by, reason, archive=archive)


def descendants(run_id: str) -> list[str]:
    """Return the ids of all descendants of a run, parents before children."""
    found: list[str] = []
    parents = [run_id]
    while parents:
        some, parents = parents[:GENERATION], parents[GENERATION:]
        children = list(Run.objects.filter(parent_id__in=some).order_by("id").values_list("id", flat=True))
        found += children
        parents += children
    return found
