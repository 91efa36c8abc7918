"""What may be asked of a stand-alone task: schedule, rerun, cancel, prioritize; and word of what it depends on."""

from collections.abc import Iterable, Iterator

from ..errors import Conflict
from ..states import BLOCKED, PENDING
from .decide import Command
from .effects import (
    Effect,
    PublishMessage,
    SatisfyDependency,
    TransitionTask,
    UpdateStandaloneAttempt,
    UpdateStandaloneTask,
)
from .resolutions import CANCELED, MOST_ATTEMPTS, RERUN, SCHEDULED
from .rules import end_task, next_attempt
from .snapshot import StandaloneTask


def define_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """The task is new."""
    yield PublishMessage("defined")


def redefine_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """The same task is defined once more: who listens is told again, nothing else happens."""
    yield PublishMessage("defined")
    yield from _reopen_effects(standalone)


def schedule_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Let the task be handed out, whatever it depends on."""
    _require_before_deadline(standalone, now)
    if standalone.status == BLOCKED:
        yield TransitionTask("release")
        yield from next_attempt(standalone, SCHEDULED, now)


def rerun_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Try the task once more, with all its retries; nothing happens where it is still to be done."""
    _require_before_deadline(standalone, now)
    if standalone.is_open and standalone.status != BLOCKED:
        yield from _reopen_effects(standalone)
        return
    count = len(standalone.attempts)
    if count >= MOST_ATTEMPTS:
        raise Conflict(f"Task {standalone.id} has had {count} runs, and no more are allowed.")
    yield UpdateStandaloneTask({"retries_left": min(standalone.retries, MOST_ATTEMPTS - count - 1)})
    yield TransitionTask("release" if standalone.status == BLOCKED else "reopen")
    yield from next_attempt(standalone, RERUN, now)


def cancel_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Stop the task. What is resolved stays as it is; who listens is told again of a task that was canceled."""
    _require_before_deadline(standalone, now)
    last = standalone.attempt
    if standalone.is_open:
        yield from end_task(standalone, CANCELED, now)
    elif last is not None and last.reason == CANCELED:
        yield PublishMessage("exception", last.number)


def cancel_if_open(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Stop the task if it is open and not late, as its group is stopped."""
    if standalone.is_open and not standalone.is_late(now):
        yield from end_task(standalone, CANCELED, now)


def prioritize(priority: int) -> Command:
    """The command that gives the task another priority."""

    def command(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
        _require_before_deadline(standalone, now)
        if standalone.ever_resolved:
            raise Conflict(f"Task {standalone.id} has been resolved: its priority stays as it was.")
        if standalone.priority == priority:
            raise Conflict(f"Task {standalone.id} has that priority already.")
        yield UpdateStandaloneTask({"priority": priority})
        if standalone.attempt is not None and standalone.attempt.is_open:
            yield UpdateStandaloneAttempt({"priority": priority})
        yield PublishMessage("priority-changed", facts={"old": standalone.priority, "new": priority})

    return command


def unless_rerun_since(moment: int, wanted: Command) -> Command:
    """The command, where the task was not rerun after it was asked."""

    def command(standalone: StandaloneTask, now: int) -> Iterable[Effect]:
        last = standalone.attempt
        is_another = last is not None and last.cause == RERUN and last.scheduled_at > moment
        return () if is_another else wanted(standalone, now)

    return command


def satisfy_dependency(required_id: str) -> Command:
    """The command of the news that something is done which the task depends on."""

    def command(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
        yield SatisfyDependency(required_id)

    return command


def _reopen_effects(standalone: StandaloneTask) -> Iterator[Effect]:
    if standalone.attempt is not None and standalone.attempt.status == PENDING:
        yield PublishMessage("pending", standalone.attempt.number)


def _require_before_deadline(standalone: StandaloneTask, now: int) -> None:
    if standalone.is_late(now):
        raise Conflict(f"The deadline of task {standalone.id} has passed.")
