"""The rules of stand-alone tasks: time out, retry, release. The first to speak is heard, then all are asked again."""

from collections.abc import Iterator

from ..ids import derived_id
from ..snapshot import NEVER, Attempt
from ..states import ATTEMPT, BLOCKED, LEASED, PENDING
from .effects import Effect, MoveAttempt, MoveTask, OpenAttempt, Resolved, Tell, UpdateAttempt, UpdateTask
from .endings import CLAIM_EXPIRED, DEADLINE, ENDINGS, PLACEHOLDER, SCHEDULED
from .snapshot import Solo


def time_out(solo: Solo, now: int) -> Iterator[Effect]:
    """The deadline, or the worker's lease, has passed."""
    last = solo.attempt
    if solo.wake_at <= now and (solo.status == BLOCKED or (last is not None and last.is_open)):
        yield from end(solo, DEADLINE, now)
    elif last is not None and last.status == LEASED and last.due_at <= now:
        if solo.is_late(now):
            # What has lost its worker that late is left to the deadline.
            yield UpdateAttempt({"due_at": NEVER})
        else:
            yield MoveAttempt("expire", now, {"reason": CLAIM_EXPIRED})


def retry(solo: Solo, now: int) -> Iterator[Effect]:
    """An attempt has ended: another one follows while retries are left, or the task is resolved."""
    last = solo.attempt
    if solo.status == BLOCKED or last is None or last.is_open:
        return
    ending = ENDINGS[last.reason]
    if ending.retried_as and solo.retries_left > 0:
        yield UpdateTask({"retries_left": solo.retries_left - 1})
        yield Tell("retried", last.number)
        yield from another(solo, ending.retried_as, now)
        return
    yield MoveTask(ending.resolves)
    yield Tell(outcome(last), last.number)
    yield Resolved(outcome(last))


def release(solo: Solo, now: int) -> Iterator[Effect]:
    """What it depends on is done: it may be handed out."""
    if solo.status == BLOCKED and not solo.waits and not solo.is_late(now):
        yield MoveTask("release")
        yield from another(solo, SCHEDULED, now)


RULES = (time_out, retry, release)


def another(solo: Solo, cause: str, now: int) -> Iterator[Effect]:
    """The next attempt, to be handed out at once."""
    attempt = new_attempt(solo, cause, now)
    yield OpenAttempt(attempt)
    yield Tell("pending", attempt.number)


def end(solo: Solo, reason: str, now: int) -> Iterator[Effect]:
    """End an open task for this reason. One that never came to its turn gets an attempt that says how it ended."""
    ending = ENDINGS[reason]
    if solo.status != BLOCKED:
        yield MoveAttempt(ending.event, now, {"reason": reason})
        return
    status = ATTEMPT.after(PENDING, ending.event)
    yield OpenAttempt(new_attempt(solo, PLACEHOLDER, now, status=status, reason=reason, ended_at=now, updated_at=now))
    yield MoveTask(ending.resolves)
    yield Tell("exception", len(solo.attempts))
    yield Resolved("exception")


def new_attempt(solo: Solo, cause: str, now: int, status: str = PENDING, **facts: object) -> Attempt:
    """An attempt with the next number."""
    number = len(solo.attempts)
    return Attempt(
        id=derived_id(now, solo.id, number),
        number=number,
        seq=number,
        status=status,
        scheduled_at=now,
        visible_at=now,
        pending_since=now,
        queue=solo.queue,
        priority=solo.priority,
        ends_at=solo.deadline_at,
        lease_ms=solo.lease_ms,
        cause=cause,
        **facts,  # type: ignore[arg-type]
    )


def outcome(attempt: Attempt) -> str:
    """What an ended attempt came to: completed, failed, or an exception of some reason."""
    return attempt.reason if attempt.reason in ("completed", "failed") else "exception"


def state(attempt: Attempt) -> str:
    """An attempt's state in one word."""
    return {PENDING: "pending", LEASED: "running"}.get(attempt.status) or outcome(attempt)
