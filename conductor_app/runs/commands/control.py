"""Commands that pause, resume, terminate, remove and label a run."""

from collections.abc import Iterable, Mapping
from typing import Any

from ...access import audit
from ...core import commands
from ...core.errors import Invalid, NotFound
from ...core.states import RUN
from ...db.database import transaction
from ...db.fields import strip_nul
from ...failures.models import Failure
from ...payloads import files
from ...payloads.store import expire_payloads_of_run
from ...utils import clock
from ..models import MAX_LABEL_LENGTH, Run, RunLabel
from ..store import writing
from .change import Audit, RunCommand, change_run


def pause_run(run_id: str, by: str, reason: str = "") -> None:
    """Pause a run: it schedules nothing until it is resumed.

    Raises:
        Conflict: when the run is not running.
    """
    change_run(RunCommand(run_id, commands.pause_run, by, reason, audit=Audit("pause")))


def resume_run(run_id: str, by: str, reason: str = "") -> None:
    """Resume a paused run.

    Raises:
        Conflict: when the run is not paused.
    """
    change_run(RunCommand(run_id, commands.resume_run, by, reason, audit=Audit("resume")))


def terminate_run(run_id: str, by: str, reason: str = "", with_failure: bool = False) -> None:
    """Terminate a run: its open tasks are canceled and its child runs terminated.

    Raises:
        Conflict: when the run is not open.
    """
    change_run(RunCommand(run_id, commands.terminate_run(reason, with_failure), by, reason, audit=Audit("terminate")))


def remove_run(
    run_id: str, by: str, reason: str = "", archive: bool = True, facts: Mapping[str, Any] | None = None
) -> None:
    """Delete a run with everything that belongs to it. `facts`: what the audit log says besides the reason.

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
        audit.record("run", run_id, "remove", by, reason=reason, facts=facts)


GENERATION = 500
"""Number of runs whose children are read in one query."""


def terminate_and_remove(
    run_id: str, by: str, reason: str = "", *, archive: bool = True, cascade: bool = False
) -> None:
    """Terminate a run and then remove it, in two transactions: if the second one fails, the run stays terminated.

    Raises:
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


MAX_LABELS = 20


def clean_labels(labels: Iterable[str]) -> list[str]:
    """Return the labels without surrounding spaces and duplicates."""
    found = list(dict.fromkeys(strip_nul(label).strip() for label in labels))
    for label in found:
        if not label or len(label) > MAX_LABEL_LENGTH or "," in label or not label.isprintable():
            raise Invalid(
                f"A label must have 1 to {MAX_LABEL_LENGTH} printable characters, no comma (got {label[:80]!r})."
            )
    _refuse_too_many(len(found))
    return found


def save_labels(run_id: str, labels: Iterable[str]) -> None:
    """Save the labels of a new run, in the transaction that creates it."""
    RunLabel.objects.bulk_create(RunLabel(run_id=run_id, name=label) for label in labels)


def add_labels(run_id: str, labels: Iterable[str], by: str, reason: str = "") -> list[str]:
    """Add labels to a run. Returns the labels that it did not have before.

    Raises:
        Invalid: when a label is invalid, or the run would have too many.
    """
    wanted = clean_labels(labels)
    with transaction.atomic():
        known = _lock_labels(run_id)
        added = [label for label in wanted if label not in known]
        _refuse_too_many(len(known) + len(added))
        save_labels(run_id, added)
        _record_change(run_id, "add labels", by, reason, added)
    return added


def remove_labels(run_id: str, labels: Iterable[str], by: str, reason: str = "") -> list[str]:
    """Remove labels from a run. Returns the labels that it had."""
    with transaction.atomic():
        known = _lock_labels(run_id)
        removed = [label for label in dict.fromkeys(labels) if label in known]
        RunLabel.objects.filter(run_id=run_id, name__in=removed).delete()
        _record_change(run_id, "remove labels", by, reason, removed)
    return removed


def _lock_labels(run_id: str) -> set[str]:
    """Lock a run and return its labels. The lock keeps concurrent requests from exceeding the limit together."""
    if Run.objects.select_for_update().filter(pk=run_id).values("pk").first() is None:
        raise NotFound(f"No such workflow found by id: {run_id}")
    return set(RunLabel.objects.filter(run_id=run_id).values_list("name", flat=True))


def _refuse_too_many(count: int) -> None:
    if count > MAX_LABELS:
        raise Invalid(f"A run can have at most {MAX_LABELS} labels.")


def _record_change(run_id: str, action: str, by: str, reason: str, labels: list[str]) -> None:
    if labels:
        facts = {"labels": labels}
        audit.record("run", run_id, action, by, reason=reason, facts=facts)
