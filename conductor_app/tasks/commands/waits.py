"""Wait until a run ends or blocks, or a task ends or reaches a status.

A waiting request holds no database connection; notifications wake it.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from ... import notifications
from ...access.grants import may_control_run
from ...core.decide import Report
from ...core.decision_context import conductor_status
from ...core.errors import NotFound
from ...core.states import ATTEMPT, RUN
from ...notifications import LOCAL_CALLER, PendingWait, Waiter, WaitingClient, WaitSteps
from ...runs.models import Attempt
from ...runs.store import loading
from ...utils import clock
from .pollers import release_connection
from .reports import report_task

FoundT = TypeVar("FoundT")
MAX_WAIT_SECONDS = 120
"""The maximum time that a request waits for a run."""
MAX_POLL_INTERVAL = 1.0
"""Seconds after which a wait reads its run again: the longest delay by a lost notification."""
MAX_TRIES = 5
"""Tries of a signal to find an open task when another request resolves the found one first."""


@dataclass(frozen=True, slots=True)
class WaitOutcome:
    """Reason why a wait is over: the run ended, this task of it or of a descendant waits or ended, or time ran out.

    `attempt_id`: empty if the run ended or the wait timed out.
    """

    run_id: str
    attempt_id: str = ""
    timed_out: bool = False


def begin_run_wait(
    run_id: str, seconds: float, until_refs: Collection[str] = (), client: WaitingClient = LOCAL_CALLER
) -> WaitSteps[WaitOutcome]:
    """Return the steps of a wait for a run.

    It ends when the run ends, blocks on an open WAIT or YIELD task, or ends a task of these references. The tasks of
    descendants count too. Returns earlier with `timed_out` if too many requests are waiting.
    """
    begins_at = monotonic()
    if found := check_wait_outcome(run_id, until_refs):
        return found
    seconds = notifications.limit_wait(client, min(seconds, MAX_WAIT_SECONDS))
    if seconds <= 0:
        return WaitOutcome(run_id, timed_out=True)
    ends_at = begins_at + seconds
    with _subscribe_to_run(run_id, seconds, client) as waiter:
        found = yield from _wait_for(lambda: check_wait_outcome(run_id, until_refs), waiter, ends_at)
    return found or WaitOutcome(run_id, timed_out=True)


def begin_end_wait(run_id: str, seconds: float) -> WaitSteps[bool]:
    """Return the steps of a wait for the end of a run, up to `seconds`. The result is True if the run has ended."""
    now, ends_at = clock.now(), monotonic() + min(seconds, MAX_WAIT_SECONDS)
    names = loading.mark_watched([run_id], run_id, now + round(seconds * 1000), now)
    with notifications.subscribe(*map(notifications.broadcast_topic, sorted(names or {run_id}))) as waiter:
        return bool((yield from _wait_for(lambda: loading.status_of(run_id) in RUN.final, waiter, ends_at)))


def _wait_for(find: Callable[[], FoundT], waiter: Waiter, ends_at: float) -> WaitSteps[FoundT | None]:
    """Return the steps of a wait until `find` returns a true value, which is the result; None if the time ends first.

    `ends_at`: a time of the monotonic clock.
    """
    while not (found := find()):
        left = ends_at - monotonic()
        if left <= 0 or notifications.is_closing():
            return None
        release_connection()
        yield PendingWait(waiter, min(left, MAX_POLL_INTERVAL))
    return found


@contextmanager
def _subscribe_to_run(run_id: str, seconds: float, client: WaitingClient) -> Iterator[Waiter]:
    """Subscribe to notifications about a run and its descendants, and mark them as watched."""
    now = clock.now()
    until = now + round(seconds * 1000)
    # The run is marked first, because children that it starts from now on inherit the mark.
    names = loading.mark_watched([run_id], run_id, until, now)
    if children := loading.load_run_tree(run_id).run_ids[1:]:
        names |= loading.mark_watched(children, run_id, until, now)
    with notifications.subscribe(*map(notifications.broadcast_topic, sorted(names)), client=client) as waiter:
        yield waiter


def begin_task_wait(
    attempt_id: str, statuses: Collection[str], seconds: float, client: WaitingClient = LOCAL_CALLER
) -> WaitSteps[None]:
    """Return the steps of a wait until an attempt has ended, or has one of these statuses of Conductor.

    Returns earlier if too many requests are waiting.

    Raises:
        NotFound: when there is no such attempt, or it is removed during the wait.
    """
    begins_at = monotonic()
    run_id, is_over = _look_at_task(attempt_id, statuses)
    seconds = notifications.limit_wait(client, min(seconds, MAX_WAIT_SECONDS))
    if is_over or seconds <= 0:
        return
    ends_at, now = begins_at + seconds, clock.now()
    # The decisions of a watched run announce the attempts that they change.
    loading.mark_watched([run_id], run_id, now + round(seconds * 1000), now)
    with notifications.subscribe(notifications.broadcast_topic(attempt_id), client=client) as waiter:
        yield from _wait_for(lambda: _look_at_task(attempt_id, statuses)[1], waiter, ends_at)


def _look_at_task(attempt_id: str, statuses: Collection[str]) -> tuple[str, bool]:
    """Return the run of an attempt, and True if a wait for it is over."""
    found = Attempt.objects.of_runs().filter(pk=attempt_id)
    row = found.values_list("run_id", "status", "task__status", "task__attempt_id").first()
    if row is None:
        raise NotFound(f"Task not found for taskId: {attempt_id}")
    run_id, status, task_status, newest_id = row
    shown = conductor_status(status, task_status if newest_id == attempt_id else "")
    return run_id, status in ATTEMPT.final or shown in statuses


def check_wait_outcome(run_id: str, until_refs: Collection[str] = ()) -> WaitOutcome | None:
    """Return the outcome of a wait if the run has ended or blocks now, otherwise None."""
    if loading.status_of(run_id) in RUN.final:
        return WaitOutcome(run_id)
    runs, waits = loading.load_run_tree(run_id)
    found = next((wait for wait in waits if not wait.is_timed), None)
    if found is None and until_refs:
        found = loading.find_ended_task(runs, until_refs)
    return WaitOutcome(found.run_id, found.attempt_id) if found else None


def signal_run(run_id: str, report: Report, by: str) -> str | None:
    """Report on the first open WAIT task of a run or of its live descendants. Returns its attempt id, or None.

    Descendants that the current actor may not control are skipped.
    """
    loading.status_of(run_id)
    for _ in range(MAX_TRIES):
        waits = loading.load_run_tree(run_id).waits
        found = next((wait for wait in waits if wait.run_id == run_id or may_control_run(wait.run_id)), None)
        if found is None:
            break
        if report_task(found.run_id, found.attempt_id, report, by):
            return found.attempt_id
    return None
