"""Sweeps: bounded, repeatable passes over due rows. `continuous_sweeps` lists those that run while rows are due.

A timer of an attempt (`core/timers.py`, a lease, a delay of a step without a queue) is its column `due_at`; a delayed
task of a queue is `visible_at` only. From there to its effect:

1. `handle_due_timers` reads the attempts whose time has come, by their runs and by their standalone tasks.
2. For a run it applies no command (`change_run` with `no_command`). For a standalone task `wake_task` is the function
   that the slice `taskcluster` has registered, which does the same (`taskcluster/commands/tasks.py`).
3. The rules then find the timer: `core/rules/retries_and_timeouts.py:time_out` in a run,
   `taskcluster/core/decisions.py:time_out` in a standalone task.
4. An attempt that was due without an effect is postponed; what fails is put off, and an operator sees the error.

`wake_runs` does the same for the timer of a run (`wake_at`), and the sweep `pass_deadlines` for the deadline of a
standalone task.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence

from ..access import quotas
from ..core.decide import no_command
from ..core.snapshot import NEVER
from ..db.database import transaction
from ..definitions.simulation.commands import delete_old_tests
from ..events import store as events
from ..events.commands.intake import prune_deliveries
from ..failures.commands import group_failures, prune_failures
from ..payloads.commands import delete_expired_payloads
from ..payloads.files import delete_unfinished
from ..runs.commands.change import RunCommand, change_run
from ..runs.commands.control import remove_run
from ..runs.commands.messages import deliver_due
from ..runs.commands.retention import record_day, runs_to_remove
from ..runs.commands.run_limits import admit_delayed_start
from ..runs.models import OVERDUE_RUN, OVERDUE_TASK
from ..runs.store import due_rows, outbox, writing
from ..runs.store.due_rows import handle_each, put_off_timers
from ..schedules.firing import fire_schedule, start_waiting_execution
from ..schedules.models import ScheduleExecution
from ..settings import conf
from ..tasks.models import Poller, SweepPass
from ..tasks.shares import remove_idle_shares
from ..tasks.throughput import prune_counts
from ..telemetry.log_context import bind
from ..utils import clock, process_state
from ..utils.background import Sweep, registered_work, wake_task
from ..utils.process_state import Slot
from . import run_archive

log = logging.getLogger(__name__)

CLOCK = "clock"
DAY_MS = 86_400_000
SWEEP_BATCH = 500
"""The maximum number of rows of one pass of a sweep."""
POLLER_RETENTION_MS = 7 * DAY_MS
POSTPONED_MS = 60_000
"""Delay of an attempt that was due but caused no effect."""
NOTED_EVERY_MS = 10_000
"""The minimum interval between two records of passes that handled nothing."""


def handle_due_timers(limit: int) -> int:
    """Handle the attempts with a due timer: lost leases, timeouts, waits, and delays of the engine."""
    return handle_each(due_rows.due_attempts(clock.now(), limit), _handle_due_attempts, _put_off_attempts)


def _handle_due_attempts(found: due_rows.DueAttempts) -> None:
    """Decide on the due attempts of a run, and postpone them if that causes no effect."""
    if not found.run_id:
        wake_task(found.task_id)
    elif not change_run(RunCommand(found.run_id, no_command, CLOCK, attempts=found.attempt_ids)):
        log.warning("due_attempts_without_effect", extra={"run_id": found.run_id})
        # The clock may have been set back since the attempts were found. Then they are not due yet, and stay.
        now = clock.now()
        due_rows.postpone_attempts(found.attempt_ids, now + POSTPONED_MS, now)


def _put_off_attempts(found: due_rows.DueAttempts, error: str) -> None:
    if found.run_id:
        _put_off_run(found.run_id, error)
    else:
        with transaction.atomic():
            put_off_timers(OVERDUE_TASK, found.task_id, error, clock.now())


def _put_off_run(run_id: str, error: str) -> None:
    with transaction.atomic():
        put_off_timers(OVERDUE_RUN, run_id, error, clock.now())


def wake_runs(limit: int) -> int:
    """Handle the runs with a due timer: timeouts, delayed starts, and requested wake-ups."""
    return handle_each(due_rows.due_runs(clock.now(), limit), _wake_run, _put_off_run)


def _wake_run(run_id: str) -> None:
    admit_delayed_start(run_id)
    change_run(RunCommand(run_id, no_command, CLOCK))


def fire_schedules(limit: int) -> int:
    """Start the runs of schedules with a due slot."""
    return handle_each(due_rows.due_schedules(clock.now(), limit), fire_schedule)


def start_waiting_slots(limit: int) -> int:
    """Start the runs of slots that waited for an earlier run of their schedule, or for a free place."""
    return handle_each(due_rows.startable_slots(clock.now(), limit), start_waiting_execution)


def deliver_messages(limit: int) -> int:
    """Deliver the messages that were not delivered after their commit."""
    now = clock.now()
    skipped = sum(skip(now) for work in registered_work() for skip in work.skip_messages)
    return skipped + deliver_due(limit)


SWEEPS: dict[str, Sweep] = {
    "handle_due_timers": handle_due_timers,
    "wake_runs": wake_runs,
    "fire_schedules": fire_schedules,
    "start_waiting_slots": start_waiting_slots,
    "deliver_messages": deliver_messages,
    "group_failures": group_failures,
}


def continuous_sweeps() -> dict[str, Sweep]:
    """Return the sweeps that run while rows are due, by name."""
    return SWEEPS | {name: sweep for work in registered_work() for name, sweep in work.sweeps.items()}


def prune_finished(limit: int) -> int:
    """Remove the runs whose retention is over, and other expired rows: artifacts, files, results, pollers, tests."""
    now = clock.now()
    for work in registered_work():
        for delete in work.deletions:
            delete(limit)
    while delete_expired_payloads(limit) == limit:
        pass
    quotas.delete_idle_buckets()
    delete_unfinished(limit)
    prune_counts()
    remove_idle_shares(now)
    writing.delete_expired_results(now)
    Poller.objects.filter(polled_at__lt=now - POLLER_RETENTION_MS).delete()
    delete_old_tests(now)
    events.delete_ended(now - DAY_MS, limit)
    if conf.retention_days > 0:
        before = now - conf.retention_days * DAY_MS
        prune_failures(before, limit)
        ScheduleExecution.objects.filter(pk__in=due_rows.expired_slots(before, limit)).delete()
    removed = 0
    try:
        for count in _remove_runs(list(runs_to_remove(limit))):
            removed += count
    finally:
        record_day(removed)
    return removed


def _remove_runs(run_ids: Sequence[str]) -> Iterator[int]:
    """Remove runs whose retention is over, after archiving them if there is an archive. Yields how many, in parts."""
    reason = "The retention period has ended."
    if run_archive.is_configured():
        yield from run_archive.archive_and_remove(run_ids, CLOCK, reason)
    else:
        yield handle_each(run_ids, lambda run_id: remove_run(run_id, CLOCK, reason))


def prune_events(limit: int) -> int:
    """Delete the events and undeliverable messages whose retention is over."""
    if conf.event_retention_days <= 0:
        return 0
    before = clock.now() - conf.event_retention_days * DAY_MS
    return prune_deliveries(before, limit) + outbox.prune_undelivered(before)


def sweep_once() -> int:
    """Run one pass of every sweep with due rows. Returns how many items were handled."""
    return _sweep_due(due_rows.due_times())


def sweep_until(horizon_ms: int) -> int:
    """Run sweeps until nothing is due before `horizon_ms`. Returns how many items were handled.

    If nothing is due, it executes one statement.
    """
    _record_idle_passes(clock.now())
    handled = 0
    while min((moments := due_rows.due_times()).values(), default=NEVER) <= horizon_ms:
        time.sleep(max(min(moments.values()) - clock.now(), 0) / 1000)
        count = _sweep_due(moments)
        handled += count
        if not count:
            break
    return handled


def _sweep_due(moments: Mapping[str, int]) -> int:
    """Run one pass of each sweep whose earliest row is due."""
    now = clock.now()
    return sum(
        run_and_record_sweep(name, sweep, lag_ms=now - moments[name])
        for name, sweep in continuous_sweeps().items()
        if moments.get(name, NEVER) <= now
    )


def due_jobs(queues: Sequence[str], model_queues: Sequence[str] = ()) -> list[str]:
    """Return which of the jobs "work", "bulk" and "call_models" have something to do.

    `queues`: those of the built-in workers. `model_queues`: those of the built-in workers of AI tasks.
    """
    return due_rows.due_jobs(clock.now(), queues, model_queues)


def run_and_record_sweep(name: str, sweep: Sweep, lag_ms: int = 0) -> int:
    """Run one pass of a sweep and record it, with its error if it failed. Returns how many items were handled.

    `lag_ms`: the milliseconds by which the oldest due item is late.
    """
    began, error, handled = clock.now(), "", 0
    try:
        bind(sweep=name)
        handled = sweep(SWEEP_BATCH)
    except Exception as caught:
        log.exception("sweep_failed", extra={"sweep": name})
        error = f"{type(caught).__name__}: {caught}"[:500]
    _record_pass(name, began, handled, error, lag_ms)
    return handled


_recorded_at: Slot[dict[str, int]] = process_state.slot(dict)


def _record_pass(name: str, began: int, handled: int, error: str, lag: int) -> None:
    """Save the last pass for the admin pages; a pass that handled nothing only every NOTED_EVERY_MS."""
    if not handled and not error and _is_recorded(name, began):
        return
    _recorded_at.value[name] = began
    row, _ = SweepPass.objects.get_or_create(name=name, defaults={"began_at": began})
    row.began_at, row.ended_at, row.handled = began, clock.now(), handled
    row.handled_in_all, row.lag_ms = row.handled_in_all + handled, lag
    if handled:
        row.worked_at = began
    if error:
        row.error, row.failed_at = error, began
    row.save()


def _is_recorded(name: str, now: int) -> bool:
    """Return True if a pass that handled nothing need not be recorded yet."""
    return abs(now - _recorded_at.value.get(name, 0)) < NOTED_EVERY_MS


def _record_idle_passes(now: int) -> None:
    """Save that sweeps without due rows were checked, for the admin pages, every NOTED_EVERY_MS."""
    idle = [name for name in continuous_sweeps() if not _is_recorded(name, now)]
    if not idle:
        return
    _recorded_at.value.update(dict.fromkeys(idle, now))
    checked = {"began_at": now, "ended_at": now, "handled": 0, "lag_ms": 0}
    if SweepPass.objects.filter(name__in=idle).update(**checked) < len(idle):
        SweepPass.objects.bulk_create([SweepPass(name=name, **checked) for name in idle], ignore_conflicts=True)
