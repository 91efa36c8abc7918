"""Decisions on standalone tasks: rules, commands, reports of workers, and artifacts.

After a command, the first rule that fires wins; then all are evaluated again.

A claim (`claim_attempts` and `claim_attempt` in `taskcluster/store.py`) sets the end of the lease, which clients see as
`takenUntil`, and `renew_lease` extends it. The temporary credentials of the worker end then, too
(`taskcluster/api/tasks.py`); a report with other credentials counts until the sweep. When this time has come, the sweep
`handle_due_timers` evaluates the rules without a command (`wake_task` in `taskcluster/commands/tasks.py`): `time_out`
ends the attempt with the reason `claim-expired`, and `retry` opens the next one while retries are left, and otherwise
resolves the task. A while after the deadline (`grace_ms`) `time_out` ends the task as `deadline-exceeded`; an attempt
that loses its worker after the deadline ends with the task.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core.decide import run_to_fixpoint
from ...core.errors import AlreadyResolved, Conflict, Invalid, NotFound
from ...core.primitives import derived_id, fast_replace
from ...core.snapshot import NEVER, Attempt
from ...core.states import ATTEMPT, BLOCKED, LEASED, PENDING
from .snapshot import (
    ATTEMPT_RESOLUTIONS,
    CANCELED,
    CLAIM_EXPIRED,
    DEADLINE,
    MAX_ATTEMPTS,
    PLACEHOLDER,
    RERUN,
    SCHEDULED,
    Effect,
    OpenStandaloneAttempt,
    PublishMessage,
    PublishResolution,
    SatisfyDependency,
    StandaloneTask,
    TransitionStandaloneAttempt,
    TransitionTask,
    UpdateStandaloneAttempt,
    UpdateStandaloneTask,
    apply_effects,
)


def time_out(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """End the task a while after its deadline, or its attempt when the lease has expired."""
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


def unblock(standalone: StandaloneTask, now: int) -> Iterator[Effect]:
    """Make a blocked task pending when its dependencies are satisfied."""
    if standalone.status == BLOCKED and not standalone.waits and not standalone.is_late(now):
        yield TransitionTask("release")
        yield from next_attempt(standalone, SCHEDULED, now)


RULES = (time_out, retry, unblock)


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


MAX_EFFECTS = 1_000
"""Effects of one decision. The rules of a standalone task end after a few; the limit guards against an endless loop."""
Command = Callable[[StandaloneTask, int], Iterable[Effect]]


class StandaloneDecision(NamedTuple):
    """The effects, and the task after them."""

    effects: tuple[Effect, ...]
    after: StandaloneTask


def no_command(standalone: StandaloneTask, now: int) -> Iterable[Effect]:
    """Apply no command, so that the decision consists of due timers and rules only."""
    return ()


def apply_command(standalone: StandaloneTask, command: Command, now: int) -> StandaloneDecision:
    """Return the effects of a command and of all rules that fire after it.

    A deadline that has passed for longer than its grace is handled before the command.
    """
    effects: list[Effect] = []
    before = _run_rules(standalone, effects, now) if standalone.wake_at <= now else standalone
    command_effects = list(command(before, now))
    effects += command_effects
    after = _run_rules(apply_effects(before, command_effects), effects, now)
    return StandaloneDecision(tuple(effects), after)


def _run_rules(standalone: StandaloneTask, effects: list[Effect], now: int) -> StandaloneTask:
    """Apply rules until none fires, and return the last snapshot. Appends to `effects`."""
    return run_to_fixpoint(standalone, effects, lambda each: _first_firing_rule(each, now), apply_effects, MAX_EFFECTS)


def _first_firing_rule(standalone: StandaloneTask, now: int) -> list[Effect]:
    return next((new_effects for rule in RULES if (new_effects := list(rule(standalone, now)))), [])


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
    """Return the attempt with this number."""
    if number >= len(standalone.attempts):
        raise NotFound(f"Task {standalone.id} has no run {number}.")
    return standalone.attempts[number]


S3, OBJECT, REFERENCE, LINK, ERROR = ("s3", "object", "reference", "link", "error")
MINUTE_MS = 60_000
DRIFT_MS = 15 * MINUTE_MS
LATE_MS = 25 * MINUTE_MS
"""The period in which a worker can still upload artifacts, above all its log, after its attempt was ended for it."""


@dataclass(frozen=True)
class ArtifactValue:
    """An artifact. `details`: the target of a reference, the name of a linked artifact, or an error."""

    kind: str
    content_type: str
    expires_at: int
    details: Mapping[str, Any] = field(default_factory=dict)
    content_length: int | None = None


def require_writable_attempt(standalone: StandaloneTask, number: int, expires_at: int, now: int) -> Attempt:
    """Return the attempt that an artifact is added to.

    Raises:
        Invalid: when there is no claimed attempt with this number, or the expiry is invalid
        Conflict: when the attempt no longer accepts artifacts.
    """
    if expires_at < now - DRIFT_MS:
        raise Invalid("The expiry of an artifact must be in the future.")
    if number >= len(standalone.attempts):
        raise Invalid(f"Task {standalone.id} has no run {number}.")
    attempt = standalone.attempts[number]
    if not attempt.worker:
        raise Invalid(f"Run {number} of task {standalone.id} was never claimed.")
    if expires_at > standalone.expires_at:
        raise Invalid("An artifact must not expire later than its task.")
    is_late = now - (NEVER if attempt.ended_at is None else attempt.ended_at) > LATE_MS
    if attempt_state(attempt) not in ("running", "exception") or is_late:
        raise Conflict(
            f"Run {number} of task {standalone.id} no longer accepts artifacts, because it is {attempt_state(attempt)}."
        )
    return attempt


def replace_artifact(old: ArtifactValue, new: ArtifactValue) -> ArtifactValue:
    """Return the artifact after it was created again.

    Raises:
        Conflict: when it would change an existing artifact.
    """
    if not _may_replace(old, new):
        raise Conflict("A different artifact with this name already exists.")
    # A log that was streamed and then stored keeps its type.
    return fast_replace(new, content_type=old.content_type) if new.kind == LINK else new


def _may_replace(old: ArtifactValue, new: ArtifactValue) -> bool:
    if new.expires_at < old.expires_at:
        return False
    if (old.kind, new.kind) == (REFERENCE, LINK):
        return True
    if old.kind != new.kind or (new.kind != LINK and old.content_type != new.content_type):
        return False
    return new.kind == REFERENCE or all(old.details.get(name) == value for name, value in new.details.items())
