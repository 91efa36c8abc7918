"""Removing runs: alone, with what descends from them, or after ending them."""

from ..models import Run
from .runs import remove_run, terminate_run

GENERATION = 500
"""Runs whose children are looked up in one query."""


def terminate_and_remove(
    run_id: str, by: str, reason: str = "", *, archive: bool = True, cascade: bool = False
) -> None:
    """End a run, then remove it: two transactions, so one that is ended may be left. Raises NotFound, Conflict."""
    terminate_run(run_id, by, reason)
    remove_with_descendants(run_id, by, reason, archive=archive, cascade=cascade)


def remove_with_descendants(
    run_id: str, by: str, reason: str = "", *, archive: bool = True, cascade: bool = False
) -> None:
    """Remove a run; with `cascade` its descendants before it, each in its own transaction, the youngest first.

    Without `cascade` its children stay: those that are open are stopped where it is open itself, and else run on by
    themselves, with nobody to tell of their end. Raises NotFound, and Invalid where an open run is to be archived.
    """
    is_open = Run.objects.open().filter(pk=run_id).exists()
    if cascade and not (is_open and archive):
        why = reason or f"It is removed with {run_id}."
        if is_open:
            terminate_run(run_id, by, why)
        for id in reversed(descendants(run_id)):
            remove_run(id, by, why, archive=False)
    remove_run(run_id, by, reason, archive=archive)


def descendants(run_id: str) -> list[str]:
    """The runs that it has started and waited for, their children and so on; parents before children."""
    found: list[str] = []
    parents = [run_id]
    while parents:
        some, parents = parents[:GENERATION], parents[GENERATION:]
        children = list(Run.objects.filter(parent_id__in=some).order_by("id").values_list("id", flat=True))
        found += children
        parents += children
    return found
