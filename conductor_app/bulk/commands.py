"""Commands on bulk operations: start, approve, pause, resume, stop, withdraw runs, and retry refused runs.

Each run has its own transaction and its own result.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..access import audit
from ..access.authentication import current_user_id
from ..core.errors import Conflict, Invalid, NotFound, RequestRefused
from ..core.primitives import derived_id
from ..core.snapshot import NEVER
from ..core.states import BULK, CANARY, GATHERING, WATCHING, WORKING
from ..db.database import transaction
from ..db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ..runs.commands import control
from ..runs.commands.plans import Operation, apply_operation
from ..settings import conf
from ..utils import clock, randomness
from . import selections
from .models import BulkItem, BulkOperation
from .queries import failed_again

ItemAction = Callable[[str, Callable[[], None]], None]
"""Applies the action to a run id, and calls the second argument in the same transaction."""
OPTIONS = ("latest", "resume_children", "with_failure")
LABELLING: dict[str, Callable[..., Any]] = {"label": control.add_labels, "unlabel": control.remove_labels}


def bulk_action_of(row: BulkOperation) -> ItemAction:
    """Return the function that applies the action of an operation to one run."""
    reason = f"{row.reason} (bulk operation {row.pk})".strip()
    if row.action in LABELLING:
        return partial(_change_labels, LABELLING[row.action], row.options.get("labels", ()), row.by, reason)
    ticked: dict[str, Any] = {name: True for name in OPTIONS if row.options.get(name)}
    return partial(_apply_operation, Operation(row.action, reason=reason, **ticked), row.by)


def _apply_operation(operation: Operation, by: str, run_id: str, note: Callable[[], None]) -> None:
    apply_operation(run_id, operation, by, within_transaction=lambda now: note())


def _change_labels(
    change: Callable[..., Any], names: Sequence[str], by: str, reason: str, run_id: str, note: Callable[[], None]
) -> None:
    with transaction.atomic():
        change(run_id, names, by, reason)
        note()


log = logging.getLogger(__name__)

MAX_IDS = 1000
"""The maximum number of runs in one request (api §1.3)."""


@dataclass(frozen=True, slots=True)
class BulkResults:
    """Results of a bulk command: the ids of the changed runs, and an error message for each other id."""

    done: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


def apply_to_each(ids: Iterable[str], command: Callable[[str], object]) -> BulkResults:
    """Apply a command to each run, one after another. Repeated ids are handled once."""
    results = BulkResults()
    for id in dict.fromkeys(ids):
        try:
            command(id)
        except RequestRefused as refused:
            results.errors[id] = refused.message
        except Exception as error:
            if is_transient(error):
                log.warning("bulk_item_interrupted", extra={"run_id": id[:64], "why": describe_transient(error)})
                discard_broken_connection()
                results.errors[id] = f"{describe_transient(error)} Send the request again."
                continue
            log.exception("bulk_item_failed", extra={"run_id": id[:64]})
            results.errors[id] = "Internal error. See the server log."
        else:
            results.done.append(id)
    return results


ACTIONS = ("retry", "rerun", "restart", "pause", "resume", "terminate", "upgrade", *LABELLING)
"""The actions of bulk operations: the operations of `runs/commands/plans.py` that need no task, and labels."""
MAX_RATE = 1000.0
RESUME_EVENTS = {GATHERING: "gather", CANARY: "try", WATCHING: "watch", WORKING: "work"}


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """Parameters of a bulk operation.

    `rate`: runs per second. `canary_size`: number of runs in the canary. `canary_share`: the percentage of the canary
    that must succeed. `excluded`: runs of the selection to skip. `labels`: the labels to add or remove.
    """

    action: str
    selection: Mapping[str, Any]
    reason: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    labels: Iterable[str] = ()
    excluded: Iterable[str] = ()
    rate: float = 50.0
    canary_size: int = 0
    canary_share: int = 100


def start(request: BulkRequest, by: str) -> str:
    """Start a bulk operation, or submit it for approval if the policy requires that. Returns its id."""
    _check(request)
    now = clock.now()
    row = BulkOperation(
        id=derived_id(now, randomness.random_hex()),
        action=request.action,
        options=_options(request),
        selection=selections.clean_selection(request.selection),
        excluded=sorted(set(request.excluded)),
        reason=request.reason,
        by=by[:255],
        owner_id=current_user_id(),
        rate=request.rate,
        canary_size=request.canary_size,
        canary_share=request.canary_share,
        created_at=now,
        updated_at=now,
        due_at=now,
    )
    if title := selections.failure_group_titles([row.selection]).get(row.selection.get(selections.FAILURE_GROUP, 0)):
        row.options["failure_group_title"] = title
    row.needs_approval = needs_approval(request.selection)
    if row.needs_approval:
        pause_row(row)
    with transaction.atomic():
        row.save(force_insert=True)
        facts = {"action": row.action, "selection": row.selection, "rate": row.rate, "canary": row.canary_size}
        facts |= {"labels": row.options["labels"]} if row.action in LABELLING else {}
        record_bulk_change(row, by, "start", request.reason, facts)
    return row.pk


def _options(request: BulkRequest) -> dict[str, Any]:
    """Return the options of the action."""
    if request.action not in LABELLING:
        return {name: True for name in OPTIONS if request.options.get(name)}
    if not (names := control.clean_labels(request.labels)):
        raise Invalid("Enter at least one label.")
    return {"labels": names}


def needs_approval(selection: Mapping[str, Any]) -> bool:
    """Return True if a second person has to approve an operation on so many runs (`conf.bulk_approval_from`)."""
    least = conf.bulk_approval_from
    return least > 0 and selections.selected_runs(selection).order_by().values("pk")[:least].count() >= least


def approve(operation_id: str, by: str, reason: str = "") -> None:
    """Approve an operation that another person has submitted.

    Raises:
        Conflict: when the operation does not wait for approval, or `by` submitted it.
    """
    with transaction.atomic():
        row = lock_operation(operation_id)
        if not row.is_waiting_for_approval:
            raise Conflict(f"Operation {operation_id} does not wait for approval.")
        if row.by == by or (row.owner_id and row.owner_id == current_user_id()):
            raise Conflict(f"Operation {operation_id} was submitted by {by}. Another person must approve it.")
        row.approved_by, row.approved_at = by[:255], clock.now()
        _resume_operation(row)
        record_bulk_change(row, by, "approve", reason, {"asked_by": row.by, "action": row.action})


def _check(request: BulkRequest) -> None:
    if request.action not in ACTIONS:
        raise Invalid(f"Unknown bulk action {request.action[:64]!r}. Use one of: {', '.join(ACTIONS)}.")
    if not 0 < request.rate <= MAX_RATE:
        raise Invalid(f"The rate must be above 0 and at most {MAX_RATE:.0f} runs per second (got {request.rate:g}).")
    if request.canary_size < 0 or not 0 <= request.canary_share <= 100:
        raise Invalid("The size of the canary must be 0 or more, and its required share 0 to 100 percent.")
    excluded = list(request.excluded)
    if len(excluded) > selections.MAX_IDS:
        raise Invalid(f"At most {selections.MAX_IDS} runs can be excluded (got {len(excluded)}).")
    # Evaluated once, so that an invalid selection is refused here and not later in the executor.
    selections.selected_runs(request.selection).order_by()[:1].exists()


def pause(operation_id: str, by: str, reason: str = "") -> None:
    """Pause an operation: it starts no further run until it is resumed.

    Raises:
        NotAllowedInState: when the operation has ended or is paused.
    """
    with transaction.atomic():
        row = lock_operation(operation_id)
        pause_row(row)
        row.save()
        record_bulk_change(row, by, "pause", reason)


def pause_row(row: BulkOperation, resume_state: str = "") -> None:
    """Pause an operation in memory. `resume_state`: the state after a resume; by default the current one."""
    was, row.state = row.state, BULK.after(row.state, "pause")
    row.resume_state, row.due_at, row.updated_at = resume_state or was, NEVER, clock.now()


def resume(operation_id: str, by: str, reason: str = "") -> None:
    """Resume a paused operation. After a failed canary it continues with all remaining runs.

    Raises:
        Conflict: when the operation is not paused, or waits for approval.
    """
    with transaction.atomic():
        row = lock_operation(operation_id)
        if row.is_waiting_for_approval:
            raise Conflict(f"Operation {operation_id} waits for the approval of a person other than {row.by}.")
        if row.resume_state not in RESUME_EVENTS:
            raise Conflict(f"Operation {operation_id} is {row.state}: only a paused operation can be resumed.")
        _resume_operation(row)
        record_bulk_change(row, by, "resume", reason)


def _resume_operation(row: BulkOperation) -> None:
    now = clock.now()
    row.state = BULK.after(row.state, RESUME_EVENTS[row.resume_state])
    row.resume_state, row.due_at, row.paced_at, row.updated_at = "", now, now, now
    row.save()


def stop(operation_id: str, by: str, reason: str = "") -> None:
    """Stop an operation. Runs that it has changed stay changed; the others are never changed.

    Raises:
        NotAllowedInState: when the operation has ended.
    """
    now = clock.now()
    with transaction.atomic():
        row = lock_operation(operation_id)
        row.state = BULK.after(row.state, "stop")
        row.ended_at = row.updated_at = now
        row.resume_state, row.due_at = "", NEVER
        row.save()
        record_bulk_change(row, by, "stop", reason, {"left": row.remaining_count})


def withdraw(operation_id: str, run_ids: Iterable[str], by: str, reason: str = "") -> int:
    """Withdraw runs that an operation has not handled yet. Returns how many."""
    now = clock.now()
    with transaction.atomic():
        row = lock_operation(operation_id)
        waiting = row.items.filter(run_id__in=list(run_ids)[: selections.MAX_IDS], outcome=BulkItem.WAITING)
        count = waiting.update(outcome=BulkItem.WITHDRAWN, answer=f"Withdrawn by {by}.", at=now)
        row.withdrawn += count
        row.save(update_fields=["withdrawn"])
        record_bulk_change(row, by, "withdraw", reason, {"count": count})
    return count


def retry_refused(operation_id: str, by: str, reason: str = "") -> str:
    """Start a new operation with the same action on the runs that refused it. Returns its id.

    Raises:
        Conflict: when no run refused the operation.
    """
    row = _find_operation(operation_id)
    if not row.refused:
        raise Conflict(f"Operation {operation_id} has no refused runs.")
    return _repeat(row, "refused_of", by, reason)


def retry_failed_again(operation_id: str, by: str, reason: str = "") -> str:
    """Start a new operation with the same action on the runs that failed again after it. Returns its id.

    Raises:
        Conflict: when no run failed again.
    """
    row = _find_operation(operation_id)
    if not failed_again(row).exists():
        raise Conflict(f"No run of operation {operation_id} has failed again.")
    return _repeat(row, "failed_again_of", by, reason)


def _repeat(row: BulkOperation, selection: str, by: str, reason: str) -> str:
    labels = row.options.get("labels", ())
    request = BulkRequest(row.action, {selection: row.pk}, reason or row.reason, row.options, labels, rate=row.rate)
    return start(request, by)


def _find_operation(operation_id: str) -> BulkOperation:
    row = BulkOperation.objects.filter(pk=operation_id).first()
    if row is None:
        raise NotFound(f"There is no bulk operation {operation_id}.")
    return row


def lock_operation(operation_id: str) -> BulkOperation:
    """Lock an operation until the transaction ends."""
    row = BulkOperation.objects.select_for_update().filter(pk=operation_id).first()
    if row is None:
        raise NotFound(f"There is no bulk operation {operation_id}.")
    return row


def record_bulk_change(
    row: BulkOperation, by: str, action: str, reason: str, facts: Mapping[str, Any] | None = None
) -> None:
    """Write an audit entry for a bulk operation."""
    audit.record("bulk operation", row.pk, action, by, reason=reason, facts=facts)
