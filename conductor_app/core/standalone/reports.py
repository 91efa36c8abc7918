"""Commands that apply a worker's report on a standalone task: renew and resolve."""

from collections.abc import Iterator

from ..errors import AlreadyResolved, Conflict, NotFound
from ..snapshot import NEVER, Attempt
from ..states import LEASED, PENDING
from .decide import Command
from .effects import Effect, PublishMessage, TransitionStandaloneAttempt
from .resolutions import ATTEMPT_RESOLUTIONS
from .rules import attempt_outcome
from .snapshot import StandaloneTask


def report_attempt(number: int, reason: str) -> Command:
    """Return the command that ends an attempt for this reason.

    A repeated report changes nothing and is announced again.

    Raises:
        NotFound: from the command, when there is no such attempt
        Conflict: when no worker has claimed it
        AlreadyResolved: when it has ended for another reason.
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
    """Return the command that extends the lease. It never shortens it.

    Raises:
        NotFound: from the command, when there is no such attempt
        Conflict: when it is not running, or the deadline has passed.
    """

    def command(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
        attempt = find_attempt(standalone, number)
        if now >= standalone.deadline_at:
            raise Conflict(f"The deadline of task {standalone.id} has passed.")
        if attempt.status != LEASED:
            raise Conflict(f"Run {number} of task {standalone.id} is not running.")
        ends_at = max(now + attempt.lease_ms, attempt.lease_ends_at or 0)
        yield TransitionStandaloneAttempt("renew", now, {"lease_ends_at": ends_at, "due_at": ends_at})

    return command


def release_lease(number: int, worker: str) -> Command:
    """Return the command that makes an attempt pending again which this worker holds, but has not received.

    Raises:
        NotFound: from the command, when there is no such attempt.
    """

    def command(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
        attempt = find_attempt(standalone, number)
        if attempt.status != LEASED or attempt.worker != worker:
            return
        fresh = {"worker": "", "started_at": None, "visible_at": now, "pending_since": now}
        yield TransitionStandaloneAttempt("hand_back", now, {**fresh, "lease_ends_at": None, "due_at": NEVER})
        yield PublishMessage("pending", number)

    return command


def find_attempt(standalone: StandaloneTask, number: int) -> Attempt:
    """Return the attempt with this number.

    Raises:
        NotFound: when there is none.
    """
    if number >= len(standalone.attempts):
        raise NotFound(f"Task {standalone.id} has no run {number}.")
    return standalone.attempts[number]
