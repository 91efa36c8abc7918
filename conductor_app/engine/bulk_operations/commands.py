"""Commands on operations on many runs: start, pause, resume, stop, withdraw, retry what was refused."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from ... import clock, randomness
from ...core.errors import Conflict, Invalid, NotFound
from ...core.ids import derived_id
from ...core.snapshot import NEVER
from ...core.states import BULK, CANARY, GATHERING, WATCHING, WORKING
from ...insight import selections
from ...models import AuditEntry, BulkItem, BulkOperation
from .. import approval_policy, labels
from .actions import LABELLING, OPTIONS

ACTIONS = ("retry", "rerun", "restart", "pause", "resume", "terminate", "upgrade", *LABELLING)
"""What may be asked of many runs: operations of `engine/operations.py` without a task of their own, and labels."""
FASTEST = 1000.0
GOING_ON = {GATHERING: "gather", CANARY: "try", WATCHING: "watch", WORKING: "work"}


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """What is to be done with which runs, how fast, and how many are tried first.

    `canary_share`: the percentage of the canary that has to go well. `excluded`: runs of the selection that are left
    as they are. `labels`: those that are put on or taken off.
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


def start(asked: BulkRequest, by: str) -> str:
    """Begin an operation; returns its id. Raises Invalid."""
    _check(asked)
    now = clock.now()
    row = BulkOperation(
        id=derived_id(now, randomness.random_hex()),
        action=asked.action,
        options=_options(asked),
        selection=selections.clean_selection(asked.selection),
        excluded=sorted(set(asked.excluded)),
        reason=asked.reason,
        by=by[:255],
        rate=asked.rate,
        canary_size=asked.canary_size,
        canary_share=asked.canary_share,
        created_at=now,
        updated_at=now,
        due_at=now,
    )
    row.needs_approval = needs_approval(asked.action, asked.selection)
    if row.needs_approval:
        hold(row)
    with transaction.atomic():
        row.save(force_insert=True)
        said = {"action": row.action, "selection": row.selection, "rate": row.rate, "canary": row.canary_size}
        said |= {"labels": row.options["labels"]} if row.action in LABELLING else {}
        record_bulk_change(row, by, "start", asked.reason, said)
    return row.pk


def _options(asked: BulkRequest) -> dict[str, Any]:
    """What goes with the action. Raises Invalid where labels are no labels, or none are named."""
    if asked.action not in LABELLING:
        return {name: True for name in OPTIONS if asked.options.get(name)}
    if not (names := labels.clean_labels(asked.labels)):
        raise Invalid("It is not said which labels.")
    return {"labels": names}


def needs_approval(action: str, selection: Mapping[str, Any]) -> bool:
    """Whether the policy wants a second person: for the action, or for so many runs."""

    def are_so_many(least: int) -> bool:
        return selections.selected_runs(selection).order_by().values("pk")[:least].count() >= least

    return approval_policy.requires_approval(action, are_so_many)


def approve(operation_id: str, by: str, reason: str = "") -> None:
    """Let begin what somebody else has asked for. Raises Conflict where it is one's own, or waits for nobody."""
    with transaction.atomic():
        row = lock_operation(operation_id)
        if not row.is_waiting_for_approval:
            raise Conflict(f"Operation {operation_id} does not wait for an approval.")
        if row.by == by:
            raise Conflict(f"Operation {operation_id} is {by}'s own: a second person has to approve it.")
        row.approved_by, row.approved_at = by[:255], clock.now()
        _resume_operation(row)
        record_bulk_change(row, by, "approve", reason, {"asked_by": row.by, "action": row.action})


def _check(asked: BulkRequest) -> None:
    if asked.action not in ACTIONS:
        raise Invalid(f"There is no operation {asked.action[:64]} on many runs; there are: {', '.join(ACTIONS)}.")
    if not 0 < asked.rate <= FASTEST:
        raise Invalid(f"The rate is more than 0 and at most {FASTEST:.0f} runs a second.")
    if asked.canary_size < 0 or not 0 <= asked.canary_share <= 100:
        raise Invalid("A canary has a size of 0 or more, and a share from 0 to 100 percent.")
    excluded = list(asked.excluded)
    if len(excluded) > selections.MOST_IDS:
        raise Invalid(f"{selections.MOST_IDS} runs can be left out at most.")
    # Asked once, so that what cannot be read is refused here and not in the engine's own time.
    selections.selected_runs(asked.selection).order_by()[:1].exists()


def pause(operation_id: str, by: str, reason: str = "") -> None:
    """Begin with no further run until it is resumed."""
    with transaction.atomic():
        row = lock_operation(operation_id)
        hold(row)
        row.save()
        record_bulk_change(row, by, "pause", reason)


def hold(row: BulkOperation, goes_on_as: str = "") -> None:
    """Move it to rest; it goes on from where it stood, or as it is told."""
    was, row.state = row.state, BULK.after(row.state, "pause")
    row.goes_on_as, row.due_at, row.updated_at = goes_on_as or was, NEVER, clock.now()


def resume(operation_id: str, by: str, reason: str = "") -> None:
    """Go on; after a canary that went badly, with all that is left."""
    with transaction.atomic():
        row = lock_operation(operation_id)
        if row.is_waiting_for_approval:
            raise Conflict(f"Operation {operation_id} waits for the approval of somebody other than {row.by}.")
        if row.goes_on_as not in GOING_ON:
            raise Conflict(f"Operation {operation_id} is {row.state}: only one that is paused can be resumed.")
        _resume_operation(row)
        record_bulk_change(row, by, "resume", reason)


def _resume_operation(row: BulkOperation) -> None:
    now = clock.now()
    row.state = BULK.after(row.state, GOING_ON[row.goes_on_as])
    row.goes_on_as, row.due_at, row.paced_at, row.updated_at = "", now, now, now
    row.save()


def stop(operation_id: str, by: str, reason: str = "") -> None:
    """End it; what has begun stays as it is, what has not is never begun."""
    now = clock.now()
    with transaction.atomic():
        row = lock_operation(operation_id)
        row.state = BULK.after(row.state, "stop")
        row.ended_at = row.updated_at = now
        row.goes_on_as, row.due_at = "", NEVER
        row.save()
        record_bulk_change(row, by, "stop", reason, {"left": row.left})


def withdraw(operation_id: str, run_ids: Iterable[str], by: str, reason: str = "") -> int:
    """Leave some runs as they are that nothing has come of yet; returns how many."""
    now = clock.now()
    with transaction.atomic():
        row = lock_operation(operation_id)
        waiting = row.items.filter(run_id__in=list(run_ids)[: selections.MOST_IDS], outcome=BulkItem.WAITING)
        count = waiting.update(outcome=BulkItem.WITHDRAWN, answer=f"Taken out by {by}.", at=now)
        row.withdrawn += count
        row.save(update_fields=["withdrawn"])
        record_bulk_change(row, by, "withdraw", reason, {"count": count})
    return count


def retry_refused(operation_id: str, by: str, reason: str = "") -> str:
    """A new operation that asks the same of the runs that this one was refused; returns its id."""
    row = BulkOperation.objects.filter(pk=operation_id).first()
    if row is None:
        raise NotFound(f"There is no bulk operation {operation_id}.")
    if not row.refused:
        raise Conflict(f"Nothing was refused in operation {operation_id}.")
    selection, names = {"refused_of": row.pk}, row.options.get("labels", ())
    return start(BulkRequest(row.action, selection, reason or row.reason, row.options, names, rate=row.rate), by)


def lock_operation(operation_id: str) -> BulkOperation:
    """The operation's row, locked until the transaction ends."""
    row = BulkOperation.objects.select_for_update().filter(pk=operation_id).first()
    if row is None:
        raise NotFound(f"There is no bulk operation {operation_id}.")
    return row


def record_bulk_change(
    row: BulkOperation, by: str, action: str, reason: str, facts: Mapping[str, Any] | None = None
) -> None:
    """Who did it, and why."""
    AuditEntry.objects.create(
        at=clock.now(),
        actor=by,
        action=action,
        object_type="bulk operation",
        object_id=row.pk,
        reason=reason,
        facts=dict(facts or {}),
    )
