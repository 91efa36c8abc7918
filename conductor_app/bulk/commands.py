"""Commands on bulk operations: start, approve, pause, resume, stop, withdraw runs, and retry refused runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from ... import clock, conf, randomness
from ...core.errors import Conflict, Invalid, NotFound
from ...core.ids import derived_id
from ...core.snapshot import NEVER
from ...core.states import BULK, CANARY, GATHERING, WATCHING, WORKING
from ...insight.bulk import selections
from ...models import BulkItem, BulkOperation
from .. import audit
from ..runs import labels
from .item_actions import LABELLING, OPTIONS

ACTIONS = ("retry", "rerun", "restart", "pause", "resume", "terminate", "upgrade", *LABELLING)
"""The actions of bulk operations: the operations of `engine/runs/operations.py` that need no task, and labels."""
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
    """Start a bulk operation, or submit it for approval if the policy requires that. Returns its id.

    Raises:
        Invalid: when a value of the request is invalid.
    """
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
        rate=request.rate,
        canary_size=request.canary_size,
        canary_share=request.canary_share,
        created_at=now,
        updated_at=now,
        due_at=now,
    )
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
    """Return the options of the action.

    Raises:
        Invalid: when an option is missing.
    """
    if request.action not in LABELLING:
        return {name: True for name in OPTIONS if request.options.get(name)}
    if not (names := labels.clean_labels(request.labels)):
        raise Invalid("Enter at least one label.")
    return {"labels": names}


def needs_approval(selection: Mapping[str, Any]) -> bool:
    """Return True if a second person has to approve an operation on so many runs (`conf.bulk_approval_from`)."""
    least = conf.bulk_approval_from
    return least > 0 and selections.selected_runs(selection).order_by().values("pk")[:least].count() >= least


def approve(operation_id: str, by: str, reason: str = "") -> None:
    """Approve an operation that another person has submitted.

    Raises:
        NotFound: when there is no such operation.
        Conflict: when the operation does not wait for approval, or `by` submitted it.
    """
    with transaction.atomic():
        row = lock_operation(operation_id)
        if not row.is_waiting_for_approval:
            raise Conflict(f"Operation {operation_id} does not wait for approval.")
        if row.by == by:
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
        NotFound: when there is no such operation.
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
        NotFound: when there is no such operation.
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
        NotFound: when there is no such operation.
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
    """Withdraw runs that an operation has not handled yet. Returns how many.

    Raises:
        NotFound: when there is no such operation.
    """
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
        NotFound: when there is no such operation.
        Conflict: when no run refused the operation.
    """
    row = BulkOperation.objects.filter(pk=operation_id).first()
    if row is None:
        raise NotFound(f"There is no bulk operation {operation_id}.")
    if not row.refused:
        raise Conflict(f"Operation {operation_id} has no refused runs.")
    selection, names = {"refused_of": row.pk}, row.options.get("labels", ())
    return start(BulkRequest(row.action, selection, reason or row.reason, row.options, names, rate=row.rate), by)


def lock_operation(operation_id: str) -> BulkOperation:
    """Lock an operation until the transaction ends.

    Raises:
        NotFound: when there is no such operation.
    """
    row = BulkOperation.objects.select_for_update().filter(pk=operation_id).first()
    if row is None:
        raise NotFound(f"There is no bulk operation {operation_id}.")
    return row


def record_bulk_change(
    row: BulkOperation, by: str, action: str, reason: str, facts: Mapping[str, Any] | None = None
) -> None:
    """Write an audit entry for a bulk operation."""
    audit.record("bulk operation", row.pk, action, by, reason=reason, facts=facts)
