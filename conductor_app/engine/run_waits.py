"""Waiting until a run ends or stands still. A waiting request holds no connection, and is woken by the run's news."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from .. import clock, conf, notifications
from ..core.reports import Report
from ..core.states import RUN
from ..store import run_tree
from .tasks import LONGEST_NAP, release_connection, report_task

TRIES = 5
"""How often a signal looks for another task where somebody else was first at the one that it had found."""


@dataclass(frozen=True, slots=True)
class WaitOutcome:
    """Why a run does not go on by itself: it has ended, or this task of it or of a descendant waits, or was waited for.

    `attempt_id` is empty where the run has ended, and where it was still on its way when the time was over.
    """

    run_id: str
    attempt_id: str = ""
    timed_out: bool = False


def wait_for_run(run_id: str, seconds: float, until_refs: Collection[str] = ()) -> WaitOutcome:
    """Wait until the run has ended, waits for somebody, or has ended a task of these references; raises NotFound.

    A descendant's waiting is the run's, and so are its tasks. With no time left the answer says so.
    """
    ends_at = monotonic() + min(seconds, conf.most_wait_seconds)
    if found := check_wait_outcome(run_id, until_refs):
        return found
    if seconds <= 0 or notifications.count_waiting() >= conf.most_waiting_polls:
        return WaitOutcome(run_id, timed_out=True)
    with _subscribe_to_run(run_id, seconds) as waiter:
        while True:
            if found := check_wait_outcome(run_id, until_refs):
                return found
            left = ends_at - monotonic()
            if left <= 0 or notifications.is_closing():
                return WaitOutcome(run_id, timed_out=True)
            release_connection()
            waiter.wait(min(left, LONGEST_NAP))


@contextmanager
def _subscribe_to_run(run_id: str, seconds: float) -> Iterator[Any]:
    """An ear at the news of the run and of its descendants, which from now on are told."""
    now = clock.now()
    until = now + round(min(seconds, conf.most_wait_seconds) * 1000)
    # The run first: children that it starts from here on inherit the mark.
    names = run_tree.mark_watched([run_id], run_id, until, now)
    if children := run_tree.load_run_tree(run_id).run_ids[1:]:
        names |= run_tree.mark_watched(children, run_id, until, now)
    with notifications.subscribe(*map(notifications.broadcast_topic, sorted(names))) as waiter:
        yield waiter


def check_wait_outcome(run_id: str, until_refs: Collection[str] = ()) -> WaitOutcome | None:
    """Whether the run stands still now; raises NotFound."""
    if run_tree.status_of(run_id) in RUN.final:
        return WaitOutcome(run_id)
    runs, waits = run_tree.load_run_tree(run_id)
    found = next((wait for wait in waits if not wait.is_timed), None)
    if found is None and until_refs:
        found = run_tree.find_ended_task(runs, until_refs)
    return WaitOutcome(found.run_id, found.attempt_id) if found else None


def signal_run(run_id: str, said: Report, by: str) -> str | None:
    """Report on the first WAIT that is open in the run, else in its live descendants; its attempt, or None.

    Raises NotFound for an unknown run.
    """
    run_tree.status_of(run_id)
    for _ in range(TRIES):
        found = next(iter(run_tree.load_run_tree(run_id).waits), None)
        if found is None:
            break
        if report_task(found.run_id, found.attempt_id, said, by):
            return found.attempt_id
    return None
