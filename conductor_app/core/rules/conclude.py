"""Nothing left to do, or nothing left to save: the run ends."""

from collections.abc import Iterable, Iterator

from ..data_requests import Asked, Remainder, Rest, Whole
from ..decision_context import Knowledge
from ..effects import Effect
from ..failure_scopes import is_enclosed
from ..snapshot import Run, Task
from ..states import CANCELED, TIMED_OUT
from ..step_types import kind_of
from ..step_types.base import fail
from .finish_run import end_run

EVENTS = {TIMED_OUT: "time_out", CANCELED: "terminate"}
"""How the run ends, by the status of the task that it fails with; any other is `fail`."""
STATUS_OF_RUN = {TIMED_OUT: "TIMED_OUT", CANCELED: "TERMINATED"}


def break_off(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """The run ends by a TERMINATE, or by a failure that nothing forgives; what else goes on is not looked at."""
    if ending := _first(task for task in run.tasks.values() if "ends" in task.memo and task.succeeded):
        yield from _terminated(run, know, now, ending)
    elif failed := _first(task for task in run.tasks.values() if task.failed_fatally and not is_enclosed(run, task)):
        yield from _failed(run, know, now, failed)


def conclude(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """The run ends because all is done."""
    if run.has_begun or not run.definition.first:
        yield from _finished(run, know, now)


def _first(tasks: Iterable[Task]) -> Task | None:
    return min(tasks, key=lambda task: task.seq, default=None)


def _terminated(run: Run, know: Knowledge, now: int, task: Task) -> Iterator[Effect]:
    event = task.memo["ends"]
    status = {"complete": "COMPLETED", "fail": "FAILED"}.get(event, "TERMINATED")
    reason = task.memo.get("reason") or f"Workflow is {status} by TERMINATE task: {task.attempt.id}"
    failed = None if event == "complete" else task
    yield from end_run(run, know, now, event, reason, failed, output=dict(know.attempt_payload(task, "output")))


def _failed(run: Run, know: Knowledge, now: int, task: Task) -> Iterator[Effect]:
    yield from end_run(run, know, now, EVENTS.get(task.status, "fail"), sentence(task), task)


def sentence(task: Task) -> str:
    """Why the run failed, in the shape that clients know (execution §1.4)."""
    status = STATUS_OF_RUN.get(task.status, "FAILED")
    return f"Task {task.attempt.id} failed with status: {status} and reason: '{task.attempt.reason}'"


def _finished(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    waiting = run.open_tasks
    if (
        run.is_held
        or know.has_heard_of_open_tasks
        or any(not kind_of(task.step.type).waits_for_tasks for task in waiting)
    ):
        return
    rest = Remainder() if run.is_whole else know.ask(Rest(frozenset(run.tasks)))
    if rest.is_at_work:
        return
    if waiting or rest.is_open:
        yield from _deadlock(run, know, now)
        return
    bad = _permissive_failures(run) + list(rest.permissive_failures)
    if not bad:
        yield from end_run(run, know, now, "complete", needs_whole=False)
        return
    if not run.is_whole:
        raise Asked({Whole()})
    reason = ". ".join(f"Task {id} failed with status: {status} and reason: '{why}'" for id, status, why in bad)
    first = next((task for task in run.tasks.values() if task.attempt.id == bad[0][0]), None)
    yield from end_run(run, know, now, "fail", reason, first)


def _deadlock(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """All that is open waits for other tasks: a join waits for what nobody can reach, and fails (§11 row 49)."""
    if not run.is_whole:
        raise Asked({Whole()})
    for task in run.open_tasks:
        if goes_on := list(kind_of(task.step.type).stranded(task, know, now)):
            yield from goes_on
            return
    first = min(run.open_tasks, key=lambda task: (bool(task.step.heads), task.seq))
    awaited = ", ".join(first.step.joins) or "its turn"
    yield from fail(first, now, f"{first.key} waits for what no open task leads to: {awaited}.", event="fail_for_good")


def _permissive_failures(run: Run) -> list[tuple[str, str, str]]:
    """The permissive tasks that did not succeed: allowed to fail until all else is done (execution §1.3)."""
    tasks = sorted(run.tasks.values(), key=lambda task: task.seq)
    return [
        (task.attempt.id, task.status, task.attempt.reason)
        for task in tasks
        if not task.is_open and not task.succeeded and not is_enclosed(run, task)
    ]
