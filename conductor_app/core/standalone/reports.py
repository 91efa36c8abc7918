"""What workers may say of their attempts at a stand-alone task: renew, and how it ended."""

from collections.abc import Iterator

from ..errors import AlreadyResolved, Conflict, NotFound
from ..snapshot import Attempt
from ..states import LEASED, PENDING
from .decide import Command
from .effects import Effect, PublishMessage, TransitionStandaloneAttempt
from .resolutions import ATTEMPT_RESOLUTIONS
from .rules import attempt_outcome
from .snapshot import StandaloneTask


def report_attempt(number: int, reason: str) -> Command:
    """The command that ends an attempt for this reason. Said again, it changes nothing, and who listens is told again.

    Raises NotFound, Conflict where nobody works on the attempt, and AlreadyResolved where it has ended otherwise.
    """

    def command(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
        attempt = find_attempt(standalone, number)
        if attempt.status == PENDING:
            raise Conflict(f"Run {number} of task {standalone.id} is pending: no worker has claimed it.")
        if attempt.is_open:
            yield TransitionStandaloneAttempt(ATTEMPT_RESOLUTIONS[reason].event, now, {"reason": reason})
        elif attempt.reason == reason and len(standalone.attempts) - number <= 2:
            yield from _repeat_message(standalone, attempt)
        else:
            raise AlreadyResolved(f"Run {number} of task {standalone.id} was resolved as {attempt.reason} already.")

    return command


def _repeat_message(standalone: StandaloneTask, attempt: Attempt) -> Iterator[Effect]:
    last = standalone.attempts[-1]
    if attempt is not last:
        yield PublishMessage("retried", attempt.number)
        if last.status == PENDING:
            yield PublishMessage("pending", last.number)
    elif not standalone.is_open:
        yield PublishMessage(attempt_outcome(attempt), attempt.number)


def renew_lease(number: int) -> Command:
    """The command that extends the lease; it never shortens it. Raises NotFound and Conflict."""

    def command(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
        attempt = find_attempt(standalone, number)
        if now >= standalone.deadline_at:
            raise Conflict(f"The deadline of task {standalone.id} has passed.")
        if attempt.status != LEASED:
            raise Conflict(f"Run {number} of task {standalone.id} is not running.")
        ends_at = max(now + attempt.lease_ms, attempt.lease_ends_at or 0)
        yield TransitionStandaloneAttempt("renew", now, {"lease_ends_at": ends_at, "due_at": ends_at})

    return command


def find_attempt(standalone: StandaloneTask, number: int) -> Attempt:
    """The attempt with this number; raises NotFound."""
    if number >= len(standalone.attempts):
        raise NotFound(f"Task {standalone.id} has no run {number}.")
    return standalone.attempts[number]
