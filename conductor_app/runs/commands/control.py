"""Commands that pause, resume, terminate and remove a run."""

from django.db import transaction

from ...access import audit
from ...core import commands
from ...core.errors import Invalid, NotFound
from ...core.states import RUN
from ...failures.models import Failure
from ...payloads import files
from ...payloads.store import expire_payloads_of_run
from ...utils import clock
from ..models import Run
from ..store import writing
from .change import Audit, RunCommand, change_run


def pause_run(run_id: str, by: str, reason: str = "") -> None:
    """Pause a run: it schedules nothing until it is resumed.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is not running.
    """
    change_run(RunCommand(run_id, commands.pause_run, by, reason, audit=Audit("pause")))


def resume_run(run_id: str, by: str, reason: str = "") -> None:
    """Resume a paused run.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is not paused.
    """
    change_run(RunCommand(run_id, commands.resume_run, by, reason, audit=Audit("resume")))


def terminate_run(run_id: str, by: str, reason: str = "", with_failure: bool = False) -> None:
    """Terminate a run: its open tasks are canceled and its child runs terminated.

    Raises:
        NotFound: when there is no such run.
        Conflict: when the run is not open.
    """
    change_run(RunCommand(run_id, commands.terminate_run(reason, with_failure), by, reason, audit=Audit("terminate")))


def remove_run(run_id: str, by: str, reason: str = "", archive: bool = True) -> None:
    """Delete a run with everything that belongs to it.

    Raises:
        NotFound: when there is no such run.
        Invalid: when `archive` is set and the run is open.
    """
    if not archive and Run.objects.open().filter(pk=run_id).exists():
        # Its parent, its children and runs that wait for its rate limit are notified as for any other end.
        terminate_run(run_id, by, reason or "The workflow was removed.")
    with transaction.atomic():
        row = Run.objects.select_for_update().filter(pk=run_id).values("status", "name").first()
        if row is None:
            raise NotFound(f"No such workflow found by id: {run_id}")
        if archive and row["status"] in RUN.open:
            raise Invalid(f"Cannot archive workflow: {run_id} with status: {row['status']}: terminate it first.")
        Failure.objects.filter(run_id=run_id).delete()
        files.delete_files_of_run(run_id)
        expire_payloads_of_run(run_id, clock.now())
        writing.delete_run(run_id)
        audit.record("run", run_id, "remove", by, reason=reason)


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
