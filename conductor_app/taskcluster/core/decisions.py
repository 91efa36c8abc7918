"""Commands on a standalone task: schedule, rerun, cancel, prioritize, and satisfy a dependency."""

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
from .resolutions import CANCELED, MAX_ATTEMPTS, RERUN, SCHEDULED
from .rules import end_task, next_attempt
from .snapshot import StandaloneTask


def define_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Announce a new task."""
    yield PublishMessage("defined")


def redefine_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Announce a task again whose definition was sent again. Nothing else changes."""
    yield PublishMessage("defined")
    yield from _reopen_effects(standalone)


def schedule_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Make the task pending regardless of its dependencies."""
    _require_before_deadline(standalone, now)
    if standalone.status == BLOCKED:
        yield TransitionTask("release")
        yield from next_attempt(standalone, SCHEDULED, now)


def rerun_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Rerun the task with all its retries. An unresolved task stays unchanged.

    Raises:
        Conflict: when the task has had too many attempts.
    """
    _require_before_deadline(standalone, now)
    if standalone.is_open and standalone.status != BLOCKED:
        yield from _reopen_effects(standalone)
        return
    count = len(standalone.attempts)
    if count >= MAX_ATTEMPTS:
        raise Conflict(f"Task {standalone.id} has reached the limit of {count} runs.")
    yield UpdateStandaloneTask({"retries_left": min(standalone.retries, MAX_ATTEMPTS - count - 1)})
    yield TransitionTask("release" if standalone.status == BLOCKED else "reopen")
    yield from next_attempt(standalone, RERUN, now)


def cancel_task(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Cancel the task. A resolved task stays unchanged; a canceled one is announced again."""
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
    """Return the command that changes the priority.

    Raises:
        Conflict: from the command, when the task is resolved or has that priority already.
    """

    def command(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
        _require_before_deadline(standalone, now)
        if standalone.ever_resolved:
            raise Conflict(f"Task {standalone.id} is resolved, so its priority cannot be changed.")
        if standalone.priority == priority:
            raise Conflict(f"Task {standalone.id} has that priority already.")
        yield UpdateStandaloneTask({"priority": priority})
        if standalone.attempt is not None and standalone.attempt.is_open:
            yield UpdateStandaloneAttempt({"priority": priority})
        yield PublishMessage("priority-changed", facts={"old": standalone.priority, "new": priority})

    return command


def unless_rerun_since(moment: int, wanted: Command) -> Command:
    """Return the command; it does nothing if the task was rerun after `moment`."""

    def command(standalone: StandaloneTask, now: int) -> Iterable[Effect]:
        last = standalone.attempt
        is_another = last is not None and last.cause == RERUN and last.scheduled_at > moment
        return () if is_another else wanted(standalone, now)

    return command


def satisfy_dependency(required_id: str) -> Command:
    """Return the command that marks a dependency as satisfied."""

    def command(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
        yield SatisfyDependency(required_id)

    return command


def _reopen_effects(standalone: StandaloneTask) -> Iterator[Effect]:
    if standalone.attempt is not None and standalone.attempt.status == PENDING:
        yield PublishMessage("pending", standalone.attempt.number)


def _require_before_deadline(standalone: StandaloneTask, now: int) -> None:
    if standalone.is_late(now):
        raise Conflict(f"The deadline of task {standalone.id} has passed.")
