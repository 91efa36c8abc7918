"""Execution of bulk operations: collect the runs in batches, run the canary, then the others at the given rate.

The result of an item takes two statements, in the transaction of its run.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from django.db.models import Max, Min, QuerySet

from ..access.authentication import acting_as_owner
from ..access.visibility import controllable
from ..core.errors import Forbidden, RequestRefused
from ..core.primitives import lowest_id_at
from ..core.snapshot import NEVER
from ..core.states import BULK, CANARY, GATHERING, RUN, WATCHING, WORKING
from ..db.database import transaction
from ..db.statements import execute
from ..db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ..runs.models import Run
from ..runs.store.due_rows import handle_each
from ..utils import clock, process_state
from ..utils.process_state import Slot
from . import selections
from .commands import ItemAction, bulk_action_of, lock_operation, pause_row
from .models import BulkItem, BulkOperation
from .queries import REOPENING_ACTIONS
from .selections import UNSUCCESSFUL_STATUSES

COUNTERS = {"DONE": "done", "REFUSED": "refused"}


def record_item(operation_id: str, state: str, item_id: int, outcome: str, answer: str, now: int) -> bool:
    """Record the result of an item. Returns False if the operation is in another state, or the item has a result.

    The operation is locked before the item, as in every command: another order could cause a deadlock.
    """
    counter = COUNTERS[outcome]
    operation_sql = f"UPDATE conductor_bulkoperation SET {counter} = {counter} + 1 WHERE id = %s AND state = %s"
    item_sql = "UPDATE conductor_bulkitem SET outcome = %s, answer = %s, at = %s WHERE id = %s AND outcome = 'WAITING'"
    return bool(execute(operation_sql, [operation_id, state]) and execute(item_sql, [outcome, answer, now, item_id]))


log = logging.getLogger(__name__)

BATCH = 1_000
BATCHES_A_PASS = 10
MAX_PER_PASS = 200
"""The maximum number of runs in one pass. With PASS_MS, it lets other operations proceed."""
PASS_MS = 1_000
STRIDE_MS = 100
"""The minimum interval between two passes of an operation: a pass per run would cost as much as the run."""
CLAIM_MS = 60_000
"""The period in which an operation belongs to its process: longer than one pass. After it another process continues."""
WATCHED_MS = 60_000
"""The period in which the runs of a canary are watched. Runs that are still open at its end have not succeeded."""
CHECK_INTERVAL_MS = 1_000
PUT_OFF_MS = 10_000
"""Delay of an operation after an unexpected exception."""
MAX_DUE_OPERATIONS = 100
MAX_INTERRUPTION_MS = 60_000
"""The maximum delay of an operation that meets transient errors. The first one delays it for a second."""
_interruptions: Slot[dict[str, int]] = process_state.slot(dict)
"""The number of successive passes of this process that met a transient error, by operation."""


class ItemNoLongerWaiting(Exception):
    """The operation was paused or stopped, or the run withdrawn, during the action."""


def run_due_operations() -> int:
    """Advance the operations that are due first, up to MAX_DUE_OPERATIONS. Returns how many."""
    now = clock.now()
    due = _unclaimed_operations(now).filter(due_at__lte=now).order_by("due_at")
    return handle_each(list(due.values_list("pk", flat=True)[:MAX_DUE_OPERATIONS]), _advance_operation)


def run_operations_until(end_ms: int, wait_ms: int, is_stopping: Callable[[], bool] = lambda: False) -> int:
    """Advance operations when they are due, until `end_ms`. Returns the number of passes.

    It returns earlier if nothing is due within `wait_ms`, so that the caller can look for new operations. Waiting here
    keeps the rate: between two ticks of the scheduler a slow machine would fall behind.
    """
    handled = run_due_operations()
    while (now := clock.now()) < end_ms and not is_stopping():
        moment = _unclaimed_operations(now).aggregate(first=Min("due_at"))["first"]
        if moment is None or moment > now + wait_ms:
            break
        time.sleep(max(moment - now, 0) / 1000)
        handled += run_due_operations()
    return handled


def _unclaimed_operations(now: int) -> QuerySet[BulkOperation]:
    """Return the open operations that no process holds."""
    return BulkOperation.objects.filter(state__in=sorted(BULK.open), held_until__lte=now)


def _advance_operation(operation_id: str) -> None:
    now = clock.now()
    mine = BulkOperation.objects.filter(pk=operation_id, held_until__lte=now, state__in=STEPS)
    if not mine.update(held_until=now + CLAIM_MS):
        return
    row = BulkOperation.objects.get(pk=operation_id)
    try:
        with acting_as_owner(row.owner_id):
            STEPS[row.state](row)
        _interruptions.value.pop(operation_id, None)
    except Exception as error:
        discard_broken_connection()
        delay_ms = _interruption_ms(operation_id) if is_transient(error) else PUT_OFF_MS
        BulkOperation.objects.filter(pk=operation_id, state=row.state).update(due_at=clock.now() + delay_ms)
        if not is_transient(error):
            raise
        extra = {"operation": operation_id, "why": describe_transient(error), "delay_ms": delay_ms}
        log.warning("bulk_operation_put_off", extra=extra)
    finally:
        BulkOperation.objects.filter(pk=operation_id).update(held_until=0)


def _interruption_ms(operation_id: str) -> int:
    """Count an interruption, and return the delay of the operation, which grows with each one."""
    interruptions = _interruptions.value
    count = interruptions[operation_id] = interruptions.get(operation_id, 0) + 1
    return min(1_000 * 2 ** min(count - 1, 10), MAX_INTERRUPTION_MS)


def _collect_runs(row: BulkOperation) -> None:
    """Add the runs of the selection as items, in batches by increasing id."""
    for _ in range(BATCHES_A_PASS):
        # By id and not by `created_at`, which is in the future for a run with a delayed start.
        wanted = selections.selected_runs(row.selection).filter(
            pk__gt=row.cursor, pk__lt=lowest_id_at(row.created_at + 1)
        )
        ids = list(wanted.order_by("pk").values_list("pk", flat=True)[:BATCH])
        with transaction.atomic():
            row = lock_operation(row.pk)
            if row.state != GATHERING:
                return
            _add_items(row, ids)
            if len(ids) < BATCH:
                _start_execution(row)
            row.save()
            if row.state != GATHERING:
                return


def _add_items(row: BulkOperation, ids: Sequence[str]) -> None:
    excluded = set(row.excluded)
    wanted = [id for id in ids if id not in excluded]
    numbered = enumerate(wanted, row.total + 1)
    BulkItem.objects.bulk_create([BulkItem(operation=row, number=number, run_id=id) for number, id in numbered])
    row.total += len(wanted)
    row.cursor = ids[-1] if ids else row.cursor


def _start_execution(row: BulkOperation) -> None:
    """Start the canary, or all runs, once all items are collected."""
    now = clock.now()
    event = "finish" if not row.total else "try" if row.canary_size else "work"
    row.state, row.updated_at, row.due_at = BULK.after(row.state, event), now, now
    row.paced_at = now - round(1000 / row.rate)
    if row.state in BULK.final:
        row.ended_at, row.due_at, row.verdict = now, NEVER, "No runs match the selection."


def _run_canary(row: BulkOperation) -> None:
    _run_within_rate(row, min(row.canary_size, row.total) - (row.total - row.remaining_count), "watch")


def _run_remaining(row: BulkOperation) -> None:
    _run_within_rate(row, row.remaining_count, "finish")


def _run_within_rate(row: BulkOperation, most: int, then: str) -> None:
    """Handle as many runs as the rate allows now. Move to the next state when none is left.

    Raises:
        Exception: a transient error that an item met. It waits behind the other items, and the operation is put off.
    """
    began = clock.now()
    # At most two seconds of unused rate are caught up.
    paced_at = max(row.paced_at, began - 2000)
    allowed = int((began - paced_at) * row.rate / 1000)
    apply, handled = bulk_action_of(row), 0
    items = list(_pending_items(row)[: max(min(allowed, most, MAX_PER_PASS), 0)])
    forbidden = _forbidden_runs([run_id for _item_id, run_id in items])
    for item_id, run_id in items:
        if clock.now() - began >= PASS_MS:
            break
        try:
            if not _process_item(row, item_id, run_id, refuse if run_id in forbidden else apply):
                return
        except Exception as error:
            _move_behind_others(row, item_id, error)
            _record_rate_use(row, paced_at + round(handled * 1000 / row.rate), "")
            raise
        handled += 1
    is_over = handled >= most or not _pending_items(row)[:1]
    _record_rate_use(row, paced_at + round(handled * 1000 / row.rate), then if is_over else "")


def _forbidden_runs(run_ids: Sequence[str]) -> set[str]:
    """Return those of the runs that the owner of the operation may not control now. Runs no query without a limit."""
    runs = Run.objects.filter(pk__in=run_ids)
    allowed = controllable(runs)
    if allowed is runs:
        return set()
    return set(run_ids).difference(allowed.values_list("pk", flat=True))


def refuse(run_id: str, note: Callable[[], None]) -> None:
    """Refuse to change a run that the owner of the operation may not control.

    Raises:
        Forbidden: always.
    """
    raise Forbidden("The owner of this operation lacks the permission to change this run.")


def _pending_items(row: BulkOperation) -> "QuerySet[BulkItem, tuple[int, str]]":
    return row.items.filter(outcome=BulkItem.WAITING).order_by("number").values_list("pk", "run_id")


def _record_rate_use(seen: BulkOperation, paced_at: int, event: str) -> None:
    """Save the used part of the rate, and apply the event to the state of the operation."""
    with transaction.atomic():
        row = lock_operation(seen.pk)
        if row.state != seen.state:
            return
        row.updated_at = clock.now()
        row.paced_at, row.due_at = paced_at, paced_at + max(round(1000 / row.rate), STRIDE_MS)
        if event:
            row.state, row.due_at = BULK.after(row.state, event), row.updated_at
        if row.state == WATCHING:
            row.watched_since = row.updated_at
        if row.state in BULK.final:
            row.ended_at, row.due_at = row.updated_at, NEVER
        row.save()


def _move_behind_others(row: BulkOperation, item_id: int, error: Exception) -> None:
    """Let an item wait that met a transient error, so that it does not block the others if it meets one each time."""
    discard_broken_connection()
    last = row.items.aggregate(last=Max("number"))["last"] or 0
    answer = f"Not done yet: {describe_transient(error)}"[:1000]
    row.items.filter(pk=item_id, outcome=BulkItem.WAITING).update(number=last + 1, answer=answer)


def _process_item(row: BulkOperation, item_id: int, run_id: str, apply: ItemAction) -> bool:
    """Apply the action to one run and record the result. Returns False if the operation was paused or stopped.

    Raises:
        Exception: a transient error. The item has no result.
    """
    try:
        _apply_and_record(row, item_id, run_id, apply)
    except ItemNoLongerWaiting:
        return BulkOperation.objects.filter(pk=row.pk, state=row.state).exists()
    return True


def _apply_and_record(row: BulkOperation, item_id: int, run_id: str, apply: ItemAction) -> None:
    try:
        apply(run_id, partial(_record_item, row, item_id, BulkItem.DONE))
    except ItemNoLongerWaiting:
        raise
    except Exception as error:
        if is_transient(error):
            raise
        if isinstance(error, RequestRefused):
            _record_refusal(row, item_id, error.message)
            return
        log.exception("bulk_item_failed", extra={"operation": row.pk, "run_id": run_id})
        _record_refusal(row, item_id, "Internal error. See the server log.")


def _record_refusal(row: BulkOperation, item_id: int, answer: str) -> None:
    with transaction.atomic():
        _record_item(row, item_id, BulkItem.REFUSED, answer)


def _record_item(row: BulkOperation, item_id: int, outcome: str, answer: str = "") -> None:
    """Record the result of an item in the transaction of its action. Raising rolls the action back.

    Raises:
        ItemNoLongerWaiting: when the item was processed or withdrawn.
    """
    if not record_item(row.pk, row.state, item_id, outcome, answer[:1000], clock.now()):
        raise ItemNoLongerWaiting


def _check_canary(row: BulkOperation) -> None:
    """Count the results of the canary. Continue if enough of its runs succeeded, otherwise pause the operation."""
    now = clock.now()
    good, bad, going_on = _count_canary_outcomes(row)
    is_over = not going_on or now >= (row.watched_since or now) + WATCHED_MS
    with transaction.atomic():
        row = lock_operation(row.pk)
        if row.state != WATCHING:
            return
        if is_over:
            _decide_after_canary(row, good, bad, going_on)
        else:
            row.due_at = now + CHECK_INTERVAL_MS
        row.save()


def _count_canary_outcomes(row: BulkOperation) -> tuple[int, int, int]:
    """Return how many runs of the canary succeeded, failed, and are still open."""
    tried = row.items.exclude(outcome__in=(BulkItem.WAITING, BulkItem.WITHDRAWN)).order_by("number")
    outcomes = list(tried.values_list("run_id", "outcome")[: row.canary_size])
    done = [run_id for run_id, outcome in outcomes if outcome == BulkItem.DONE]
    if row.action not in REOPENING_ACTIONS:
        return len(done), len(outcomes) - len(done), 0
    statuses = dict(Run.objects.filter(pk__in=done).values_list("pk", "status"))
    bad = sum(statuses.get(id) in UNSUCCESSFUL_STATUSES for id in done)
    going_on = sum(statuses.get(id) in RUN.open for id in done)
    return len(done) - bad - going_on, bad + len(outcomes) - len(done), going_on


def _decide_after_canary(row: BulkOperation, good: int, bad: int, going_on: int) -> None:
    total = good + bad + going_on
    share = round(100 * good / total) if total else 100
    row.verdict = f"{good} of {total} runs of the canary succeeded: {share} %; {row.canary_share} % are required."
    if going_on:
        row.verdict += f" Still running after {WATCHED_MS // 1000} seconds: {going_on}."
    row.updated_at = clock.now()
    if share < row.canary_share:
        pause_row(row, resume_state=WORKING)
    else:
        row.state, row.due_at = BULK.after(row.state, "work"), row.updated_at
        row.paced_at = row.updated_at


STEPS: dict[str, Callable[[BulkOperation], None]] = {
    GATHERING: _collect_runs,
    CANARY: _run_canary,
    WATCHING: _check_canary,
    WORKING: _run_remaining,
}
"""The pass of an operation in each state."""
