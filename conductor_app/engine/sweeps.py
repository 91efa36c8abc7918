"""Bounded, repeatable passes over what is due: the table SWEEPS, and the loop that rings them on time."""

import logging
import time
from collections.abc import Callable

from .. import clock, conf
from ..core.decide import no_command
from ..models import CachedResult, Poller, ScheduleExecution, SweepPass
from ..store import due_rows, webhook_waits
from ..telemetry.log_context import bind
from . import (
    events,
    failures,
    outbox,
    retention,
    schedules,
    standalone,
    throughput,
    workflow_rate_limits,
    workflow_tests,
)
from .access import client_maintenance
from .artifacts import entries as artifacts
from .change import RunCommand, change_run
from .delivery import deliver_due
from .files import handles as files
from .runs import remove_run
from .standalone import expiry
from .sweep_items import handle_each

log = logging.getLogger(__name__)

CLOCK = "clock"
DAY_MS = 86_400_000
POLLERS_KEPT_MS = 7 * DAY_MS
POSTPONED_MS = 60_000
"""A clock that ran out without a consequence is looked at again after this."""
NOTED_EVERY_MS = 10_000
"""How often a pass with nothing to do is written down."""


def expire_leases(limit: int) -> int:
    """Look at the attempts of which a clock has run out: lost leases, limits, waits, delays of the engine's own."""
    return handle_each(due_rows.due_attempts(clock.now(), limit), _expire_attempt)


def _expire_attempt(found: due_rows.DueAttempts) -> None:
    """Let the core see what is due; if it has nothing to say of it, do not ask again at once."""
    now = clock.now()
    if not found.run_id:
        standalone.wake_task(found.task_id)
    elif not change_run(RunCommand(found.run_id, no_command, CLOCK, attempts=found.attempt_ids)):
        log.warning("nothing_was_due", extra={"run_id": found.run_id})
        due_rows.postpone_attempts(found.attempt_ids, now + POSTPONED_MS, now)


def pass_deadlines(limit: int) -> int:
    """End the stand-alone tasks whose deadline has passed."""
    return handle_each(due_rows.due_standalone_tasks(clock.now(), limit), standalone.wake_task)


def wake_runs(limit: int) -> int:
    """Look at the runs whose time is over, whose start has come, and at those that asked to be woken."""
    return handle_each(due_rows.due_runs(clock.now(), limit), _wake)


def _wake(run_id: str) -> None:
    workflow_rate_limits.admit_late(run_id)
    change_run(RunCommand(run_id, no_command, CLOCK))


def deliver_messages(limit: int) -> int:
    """Deliver what was not delivered right after its commit."""
    return deliver_due(limit)


def prune_finished(limit: int) -> int:
    """Remove the runs that ended longer ago than they are kept, payloads of none, old results and old pollers."""
    now = clock.now()
    artifacts.expire(limit)
    client_maintenance.delete_expired_clients(limit)
    files.delete_unfinished(limit)
    throughput.prune_counts()
    CachedResult.objects.filter(expires_at__lte=now).delete()
    Poller.objects.filter(polled_at__lt=now - POLLERS_KEPT_MS).delete()
    workflow_tests.delete_old_tests(now)
    webhook_waits.delete_ended(now - DAY_MS, limit)
    if conf.retention_days > 0:
        before = now - conf.retention_days * DAY_MS
        failures.prune_failures(before, limit)
        ScheduleExecution.objects.filter(pk__in=due_rows.expired_slots(before, limit)).delete()
    removed = handle_each(
        list(retention.runs_to_remove(limit)), lambda run_id: remove_run(run_id, CLOCK, "Its retention is over.")
    )
    retention.record_day(removed)
    return removed


def expire_tasks(limit: int) -> int:
    """Delete the stand-alone tasks that expired longer ago than they are kept, and what is left of them."""
    return expiry.delete_expired_tasks(limit)


def fire_schedules(limit: int) -> int:
    """Start the runs of the schedules that have come to a slot."""
    return handle_each(due_rows.due_schedules(clock.now(), limit), schedules.fire_schedule)


def start_waiting_slots(limit: int) -> int:
    """Start the runs of slots that had to wait: for an earlier run of their schedule, or for their turn."""
    return handle_each(due_rows.startable_slots(clock.now(), limit), schedules.start_waiting_execution)


def prune_events(limit: int) -> int:
    """Forget the events that came in, and the messages that no sink would hear, longer ago than they are kept."""
    if conf.event_retention_days <= 0:
        return 0
    before = clock.now() - conf.event_retention_days * DAY_MS
    return events.prune_deliveries(before, limit) + outbox.prune_dead_letters(before)


SWEEPS: dict[str, Callable[[int], int]] = {
    "expire_leases": expire_leases,
    "pass_deadlines": pass_deadlines,
    "wake_runs": wake_runs,
    "fire_schedules": fire_schedules,
    "start_waiting_slots": start_waiting_slots,
    "deliver_messages": deliver_messages,
    "group_failures": failures.group_failures,
}


def sweep_once() -> int:
    """One pass of every sweep; returns how many things were handled."""
    return sum(run_and_record_sweep(name, sweep) for name, sweep in SWEEPS.items())


def sweep_until(horizon_ms: int) -> int:
    """Handle what is due, and what becomes due until the horizon, at its moment."""
    handled = sweep_once()
    while (moment := due_rows.next_due_moment()) is not None and moment <= horizon_ms:
        time.sleep(max(moment - clock.now(), 0) / 1000)
        count = sweep_once()
        handled += count
        if not count:
            break
    return handled


def run_and_record_sweep(name: str, sweep: Callable[[int], int]) -> int:
    """One pass of a sweep, kept so that pages can show it; an error is logged and kept too."""
    began, error, handled = clock.now(), "", 0
    lag = _overdue_ms(name, began)
    try:
        bind(sweep=name)
        handled = sweep(conf.sweep_batch)
    except Exception as caught:
        log.exception("sweep_failed", extra={"sweep": name})
        error = f"{type(caught).__name__}: {caught}"[:500]
    _record_pass(name, began, handled, error, lag)
    return handled


_noted_at: dict[str, int] = {}


def _overdue_ms(name: str, now: int) -> int:
    """Milliseconds by which the longest overdue thing of a sweep is late."""
    moment = due_rows.earliest_due(name)
    return max(now - moment, 0) if moment is not None else 0


def _record_pass(name: str, began: int, handled: int, error: str, lag: int) -> None:
    """Keep the last pass, so that pages can show it; an idle one only now and then."""
    if not handled and not error and abs(began - _noted_at.get(name, 0)) < NOTED_EVERY_MS:
        return
    _noted_at[name] = began
    row, _ = SweepPass.objects.get_or_create(name=name)
    row.began_at, row.ended_at, row.handled = began, clock.now(), handled
    row.handled_in_all, row.lag_ms = row.handled_in_all + handled, lag
    if handled:
        row.worked_at = began
    if error:
        row.error, row.failed_at = error, began
    row.save()
