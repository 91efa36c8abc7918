"""The rules of standalone tasks: time out, retry, release.

The first rule that fires wins; then all are evaluated again.
"""

from collections.abc import Iterator

from ..ids import derived_id
from ..snapshot import NEVER, Attempt
from ..states import ATTEMPT, BLOCKED, LEASED, PENDING
from .effects import (
    Effect,
    OpenStandaloneAttempt,
    PublishMessage,
    PublishResolution,
    TransitionStandaloneAttempt,
    TransitionTask,
    UpdateStandaloneAttempt,
    UpdateStandaloneTask,
)
from .resolutions import ATTEMPT_RESOLUTIONS, CLAIM_EXPIRED, DEADLINE, PLACEHOLDER, SCHEDULED
from .snapshot import StandaloneTask


def time_out(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """End the task at its deadline, or its attempt when the lease has expired."""
    last = standalone.attempt
    if standalone.wake_at <= now and (standalone.status == BLOCKED or (last is not None and last.is_open)):
        yield from end_task(standalone, DEADLINE, now)
    elif last is not None and last.status == LEASED and last.due_at <= now:
        if standalone.is_late(now):
            # An attempt that loses its worker after the deadline ends with the task.
            yield UpdateStandaloneAttempt({"due_at": NEVER})
        else:
            yield TransitionStandaloneAttempt("expire", now, {"reason": CLAIM_EXPIRED})


def retry(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Open another attempt after an ended one while retries are left, otherwise resolve the task."""
    last = standalone.attempt
    if standalone.status == BLOCKED or last is None or last.is_open:
        return
    ending = ATTEMPT_RESOLUTIONS[last.reason]
    if ending.retried_as and standalone.retries_left > 0:
        yield UpdateStandaloneTask({"retries_left": standalone.retries_left - 1})
        yield PublishMessage("retried", last.number)
        yield from next_attempt(standalone, ending.retried_as, now)
        return
    yield TransitionTask(ending.resolves)
    yield PublishMessage(attempt_outcome(last), last.number)
    yield PublishResolution(attempt_outcome(last))


def release(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Make a blocked task pending when its dependencies are satisfied."""
    if standalone.status == BLOCKED and not standalone.waits and not standalone.is_late(now):
        yield TransitionTask("release")
        yield from next_attempt(standalone, SCHEDULED, now)


RULES = (time_out, retry, release)


def next_attempt(standalone: StandaloneTask, cause: str, now: int) -> Iterator[Effect]:
    """Yield the effects of the next attempt, which is pending at once."""
    attempt = new_attempt(standalone, cause, now)
    yield OpenStandaloneAttempt(attempt)
    yield PublishMessage("pending", attempt.number)


def end_task(standalone: StandaloneTask, reason: str, now: int) -> Iterator[Effect]:
    """End an open task for this reason. A task that never became pending gets an attempt that records its end."""
    ending = ATTEMPT_RESOLUTIONS[reason]
    if standalone.status != BLOCKED:
        yield TransitionStandaloneAttempt(ending.event, now, {"reason": reason})
        return
    status = ATTEMPT.after(PENDING, ending.event)
    yield OpenStandaloneAttempt(
        new_attempt(standalone, PLACEHOLDER, now, status=status, reason=reason, ended_at=now, updated_at=now)
    )
    yield TransitionTask(ending.resolves)
    yield PublishMessage("exception", len(standalone.attempts))
    yield PublishResolution("exception")


def new_attempt(standalone: StandaloneTask, cause: str, now: int, status: str = PENDING, **facts: object) -> Attempt:
    """Return an attempt with the next number."""
    number = len(standalone.attempts)
    return Attempt(
        id=derived_id(now, standalone.id, number),
        number=number,
        seq=number,
        status=status,
        scheduled_at=now,
        visible_at=now,
        pending_since=now,
        queue=standalone.queue,
        priority=standalone.priority,
        ends_at=standalone.deadline_at,
        lease_ms=standalone.lease_ms,
        cause=cause,
        **facts,  # type: ignore[arg-type]
    )


def attempt_outcome(attempt: Attempt) -> str:
    """Return the outcome of an ended attempt: completed, failed or exception."""
    return attempt.reason if attempt.reason in ("completed", "failed") else "exception"


def attempt_state(attempt: Attempt) -> str:
    """Return the state of an attempt as Taskcluster names it."""
    return {PENDING: "pending", LEASED: "running"}.get(attempt.status) or attempt_outcome(attempt)
