"""What workers may say of their attempts at a stand-alone task: renew, and how it ended."""

from collections.abc import Iterator

from ..errors import AlreadyResolved, Conflict, NotFound
from ..snapshot import Attempt
from ..states import LEASED, PENDING
from .decide import Command
from .effects import Effect, MoveAttempt, Tell
from .endings import ENDINGS
from .rules import outcome
from .snapshot import Solo


def report(number: int, reason: str) -> Command:
    """The command that ends an attempt for this reason. Said again, it changes nothing, and who listens is told again.

    Raises NotFound, Conflict where nobody works on the attempt, and AlreadyResolved where it has ended otherwise.
    """

    def command(solo: Solo, now: int) -> Iterator[Effect]:
        attempt = find(solo, number)
        if attempt.status == PENDING:
            raise Conflict(f"Run {number} of task {solo.id} is pending: no worker has claimed it.")
        if attempt.is_open:
            yield MoveAttempt(ENDINGS[reason].event, now, {"reason": reason})
        elif attempt.reason == reason and len(solo.attempts) - number <= 2:
            yield from _again(solo, attempt)
        else:
            raise AlreadyResolved(f"Run {number} of task {solo.id} was resolved as {attempt.reason} already.")

    return command


def _again(solo: Solo, attempt: Attempt) -> Iterator[Effect]:
    last = solo.attempts[-1]
    if attempt is not last:
        yield Tell("retried", attempt.number)
        if last.status == PENDING:
            yield Tell("pending", last.number)
    elif not solo.is_open:
        yield Tell(outcome(attempt), attempt.number)


def renew(number: int) -> Command:
    """The command that extends the lease; it never shortens it. Raises NotFound and Conflict."""

    def command(solo: Solo, now: int) -> Iterator[Effect]:
        attempt = find(solo, number)
        if now >= solo.deadline_at:
            raise Conflict(f"The deadline of task {solo.id} has passed.")
        if attempt.status != LEASED:
            raise Conflict(f"Run {number} of task {solo.id} is not running.")
        ends_at = max(now + attempt.lease_ms, attempt.lease_ends_at or 0)
        yield MoveAttempt("renew", now, {"lease_ends_at": ends_at, "due_at": ends_at})

    return command


def find(solo: Solo, number: int) -> Attempt:
    """The attempt with this number; raises NotFound."""
    if number >= len(solo.attempts):
        raise NotFound(f"Task {solo.id} has no run {number}.")
    return solo.attempts[number]
