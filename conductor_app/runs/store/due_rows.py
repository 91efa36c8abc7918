"""Due rows: what each sweep looks for, the loop of a sweep over them, and timers that are put off after a failure."""

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from django.db import close_old_connections

from ...core.errors import NotFound
from ...core.snapshot import NEVER
from ...core.states import BULK
from ...db.statements import execute, fetch, is_in_transaction, load_statements
from ...db.transient_errors import is_transient
from ...settings import conf
from ...telemetry.log_context import log_context
from ...utils import clock, fault_points, process_state
from ...utils.process_state import Slot
from ..models import IS_OVERDUE, OVERDUE_RUN, OVERDUE_TASK, Message

log = logging.getLogger(__name__)
SWEEPS = (
    "fire_schedules", "start_waiting_slots", "handle_due_timers", "pass_deadlines", "wake_runs", "deliver_messages",
    "group_failures", "release_budget_holds",
)  # fmt: skip
"""The sweeps whose earliest due times are known, in the order of the statement `due_times`."""
MAX_DELAY_MS = 3_600_000
KEPT_MS = 60_000
"""The time after the next try at which a message is deleted, unless that try has failed."""
MAX_REMEMBERED = 10_000
DUE_ROWS_SQL = load_statements(
    "runs/store/due_rows",
    never=str(NEVER),
    is_overdue=IS_OVERDUE,
    open_bulk_states=", ".join(map(repr, sorted(BULK.open))),
)
TIMERS = {
    OVERDUE_RUN: (DUE_ROWS_SQL["set_timers_of_run"], DUE_ROWS_SQL["set_timer_of_run"]),
    OVERDUE_TASK: (DUE_ROWS_SQL["set_timers_of_task"], DUE_ROWS_SQL["set_timer_of_task"]),
}
"""The statements that set the due timers of a run, or of a standalone task."""
Item = TypeVar("Item")
PutOff = Callable[[Item, str], None]
"""Puts off an item in its rows, for longer after each failure, and stores the error for operators."""
_failed: Slot[dict[tuple[str, str], tuple[int, int]]] = process_state.slot(dict)
"""Items without rows of their own to be put off: their failures, and the time of the next try in milliseconds."""


class DueAttempts(NamedTuple):
    """Attempts of one run, or of one standalone task, with an expired timer."""

    run_id: str
    task_id: str
    attempt_ids: list[str]


def due_attempts(now: int, limit: int) -> list[DueAttempts]:
    """Return open attempts with a due timer, the longest overdue first."""
    rows = fetch(*DUE_ROWS_SQL["due_attempts"].bind(now=now, limit=limit))
    return [
        DueAttempts(run_id, task_id, [id for *_, id in group])
        for (run_id, task_id), group in groupby(sorted(rows), key=lambda row: row[:2])
    ]


def due_standalone_tasks(now: int, limit: int) -> list[str]:
    """Return standalone tasks to end, `grace_ms` after their deadline, the longest overdue first."""
    return _due_ids("due_standalone_tasks", now, limit)


def due_runs(now: int, limit: int) -> list[str]:
    """Return open runs with a due timer, the longest overdue first."""
    return _due_ids("due_runs", now, limit)


def due_schedules(now: int, limit: int) -> list[int]:
    """Return schedules whose next slot is due, the longest overdue first."""
    return _due_ids("due_schedules", now, limit)


def startable_slots(now: int, limit: int) -> list[str]:
    """Return waiting slots whose run can start now, earliest first."""
    return _due_ids("startable_slots", now, limit)


def _due_ids(statement: str, now: int, limit: int) -> list[Any]:
    return [id for (id,) in fetch(*DUE_ROWS_SQL[statement].bind(now=now, limit=limit))]


def due_times() -> dict[str, int]:
    """Return the earliest due time of each sweep that has rows."""
    [row] = fetch(*DUE_ROWS_SQL["due_times"].bind())
    return {name: moment for name, moment in zip(SWEEPS, row, strict=True) if moment is not None}


def next_due_moment() -> int | None:
    """Return the earliest due time of all sweeps."""
    return min(due_times().values(), default=None)


def due_jobs(now: int, queues: Sequence[str], model_queues: Sequence[str] = ()) -> list[str]:
    """Return which of the jobs "work", "bulk" and "call_models" have something to do.

    `queues`: those of the built-in workers. `model_queues`: those of the built-in workers of AI tasks.
    """
    statement = DUE_ROWS_SQL["due_jobs_and_model_calls" if model_queues else "due_jobs"]
    [row] = fetch(*statement.bind(queues=queues, model_queues=model_queues, now=now))
    return [name for name, is_due in zip(("work", "bulk", "call_models"), row, strict=False) if is_due]


def expired_slots(before: int, limit: int) -> list[str]:
    """Return slots that were handled before a time, oldest first. Waiting slots are kept."""
    rows = fetch(*DUE_ROWS_SQL["expired_slots"].bind(before=before, limit=limit))
    return [id for (id,) in rows]


def postpone_attempts(attempt_ids: list[str], moment: int, now: int) -> None:
    """Set the timers of these attempts to `moment`, unless they are no longer due."""
    execute(*DUE_ROWS_SQL["postpone_attempts"].bind(moment=moment, ids=attempt_ids, now=now))


def handle_each(found: Iterable[Item], handle: Callable[[Item], Any], put_off: PutOff[Item] | None = None) -> int:
    """Handle each item. Returns how many items were handled.

    A failure is logged and does not stop the loop. The item is tried again after growing delays. The line of a
    transient error has no traceback: during an outage, every item fails.
    """
    handled = 0
    for item in found:
        with log_context("sweep_item", item=str(item)):
            handled += _try_handle(item, handle, put_off)
    return handled


def _try_handle(item: Item, handle: Callable[[Item], Any], put_off: PutOff[Item] | None) -> bool:
    place = f"{handle.__module__}.{getattr(handle, '__qualname__', '')}", str(item)
    tries, next_at = _failed.value.get(place, (0, 0))
    if next_at > clock.now():
        return False
    try:
        fault_points.reach("sweep-item")
        handle(item)
    except NotFound:
        _failed.value.pop(place, None)
        return False
    except Exception as error:
        if conf.raises_in_sweeps:
            raise
        _log_failure("sweep_item_failed", error)
        if not is_in_transaction():
            # The other items need a connection that works.
            close_old_connections()
        if put_off is None or not _is_put_off(item, error, put_off):
            _remember(place, tries + 1)
        return False
    _failed.value.pop(place, None)
    return True


def _is_put_off(item: Item, error: Exception, put_off: PutOff[Item]) -> bool:
    try:
        put_off(item, f"{type(error).__name__}: {error}")
    except Exception as failure:
        if not (is_transient(error) and is_transient(failure)):
            _log_failure("sweep_item_not_put_off", failure)
        return False
    return True


def _log_failure(event: str, error: Exception) -> None:
    log.error(event, exc_info=not is_transient(error), extra={"cause": f"{type(error).__name__}: {error}"[:500]})


def _remember(place: tuple[str, str], tries: int) -> None:
    failed = _failed.value
    if len(failed) >= MAX_REMEMBERED:
        failed.clear()
    failed[place] = tries, clock.now() + growing_delay_ms(tries)


def growing_delay_ms(tries: int) -> int:
    """Return the delay after this number of failed tries. The first failure is repeated by the next sweep."""
    return 0 if tries < 2 else min(1000 * 2 ** min(tries - 2, 20), MAX_DELAY_MS)


def put_off_timers(subject: str, to: str, error: str, now: int) -> None:
    """Put off the due timers of a run or a standalone task, longer after each failure, and store the error.

    In a transaction of the caller.
    """
    found = fetch(*DUE_ROWS_SQL["find_overdue_message"].bind(to=to, subject=subject))
    id, tries = found[0] if found else (None, 0)
    until = now + growing_delay_ms(tries + 1)
    fields = {"facts": {"until": until}, "due_at": until + KEPT_MS, "tries": tries + 1, "error": error[:2000]}
    if id is None:
        Message.objects.create(to=to, subject=subject, sent_at=now, **fields)
    else:
        Message.objects.filter(pk=id).update(**fields)
    _set_timers(subject, to, until, now)


def bring_timers_forward(message: Message, now: int) -> None:
    """Make the timers due that were put off when this message was written."""
    _set_timers(message.subject, message.to, now, message.facts["until"])


def _set_timers(subject: str, to: str, moment: int, due_before: int) -> None:
    for statement in TIMERS[subject]:
        execute(*statement.bind(moment=moment, to=to, due_before=due_before))
