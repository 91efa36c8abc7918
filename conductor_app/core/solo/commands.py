"""What may be asked of a stand-alone task: schedule, rerun, cancel, prioritize; and word of what it depends on."""

from collections.abc import Iterable, Iterator

from ..errors import Conflict
from ..states import BLOCKED, PENDING
from .decide import Command
from .effects import Effect, MoveTask, Satisfy, Tell, UpdateAttempt, UpdateTask
from .endings import CANCELED, MOST_ATTEMPTS, RERUN, SCHEDULED
from .rules import another, end
from .snapshot import Solo


def define(solo: Solo, now: int) -> Iterator[Effect]:
    """The task is new."""
    yield Tell("defined")


def define_again(solo: Solo, now: int) -> Iterator[Effect]:
    """The same task is defined once more: who listens is told again, nothing else happens."""
    yield Tell("defined")
    yield from _pending_again(solo)


def schedule(solo: Solo, now: int) -> Iterator[Effect]:
    """Let the task be handed out, whatever it depends on."""
    _refuse_if_late(solo, now)
    if solo.status == BLOCKED:
        yield MoveTask("release")
        yield from another(solo, SCHEDULED, now)


def rerun(solo: Solo, now: int) -> Iterator[Effect]:
    """Try the task once more, with all its retries; nothing happens where it is still to be done."""
    _refuse_if_late(solo, now)
    if solo.is_open and solo.status != BLOCKED:
        yield from _pending_again(solo)
        return
    count = len(solo.attempts)
    if count >= MOST_ATTEMPTS:
        raise Conflict(f"Task {solo.id} has had {count} runs, and no more are allowed.")
    yield UpdateTask({"retries_left": min(solo.retries, MOST_ATTEMPTS - count - 1)})
    yield MoveTask("release" if solo.status == BLOCKED else "reopen")
    yield from another(solo, RERUN, now)


def cancel(solo: Solo, now: int) -> Iterator[Effect]:
    """Stop the task. What is resolved stays as it is; who listens is told again of a task that was canceled."""
    _refuse_if_late(solo, now)
    last = solo.attempt
    if solo.is_open:
        yield from end(solo, CANCELED, now)
    elif last is not None and last.reason == CANCELED:
        yield Tell("exception", last.number)


def cancel_quietly(solo: Solo, now: int) -> Iterator[Effect]:
    """Stop the task if it is open and not late, as its group is stopped."""
    if solo.is_open and not solo.is_late(now):
        yield from end(solo, CANCELED, now)


def prioritize(priority: int) -> Command:
    """The command that gives the task another priority."""

    def command(solo: Solo, now: int) -> Iterator[Effect]:
        _refuse_if_late(solo, now)
        if solo.ever_resolved:
            raise Conflict(f"Task {solo.id} has been resolved: its priority stays as it was.")
        if solo.priority == priority:
            raise Conflict(f"Task {solo.id} has that priority already.")
        yield UpdateTask({"priority": priority})
        if solo.attempt is not None and solo.attempt.is_open:
            yield UpdateAttempt({"priority": priority})
        yield Tell("priority-changed", facts={"old": solo.priority, "new": priority})

    return command


def unless_rerun_since(moment: int, wanted: Command) -> Command:
    """The command, where the task was not rerun after it was asked."""

    def command(solo: Solo, now: int) -> Iterable[Effect]:
        last = solo.attempt
        is_another = last is not None and last.cause == RERUN and last.scheduled_at > moment
        return () if is_another else wanted(solo, now)

    return command


def dependency_done(required_id: str) -> Command:
    """The command of the news that something is done which the task depends on."""

    def command(solo: Solo, now: int) -> Iterator[Effect]:
        yield Satisfy(required_id)

    return command


def _pending_again(solo: Solo) -> Iterator[Effect]:
    if solo.attempt is not None and solo.attempt.status == PENDING:
        yield Tell("pending", solo.attempt.number)


def _refuse_if_late(solo: Solo, now: int) -> None:
    if solo.is_late(now):
        raise Conflict(f"The deadline of task {solo.id} has passed.")
