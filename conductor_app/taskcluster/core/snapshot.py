"""Snapshot of a standalone task with all its attempts, the resolutions of attempts, and the effects of decisions.

All are frozen values. An effect knows how it changes the snapshot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core.primitives import fast_replace
from ...core.snapshot import NEVER, Attempt
from ...core.states import ATTEMPT, BLOCKED, TASK


@dataclass(frozen=True)
class StandaloneTask:
    """A standalone task. Times are epoch milliseconds.

    `waits`: a dependency is not satisfied. `is_awaited`: another task depends on it. `group_has_unresolved`: another
    task of its group was never resolved.
    """

    id: str
    group_id: str
    queue: str
    deadline_at: int
    expires_at: int
    created_at: int
    name: str = ""
    status: str = BLOCKED
    scheduler_id: str = "-"
    project_id: str = "none"
    priority: int = 1
    retries: int = 0
    retries_left: int = 0
    wake_at: int = NEVER  # when it is ended for its deadline, NEVER if it is final
    grace_ms: int = 0  # from the deadline until then
    lease_ms: int = 0
    accepts_failure: bool = False  # of its dependencies
    ever_resolved: bool = False
    waits: bool = False
    is_awaited: bool = False
    group_has_unresolved: bool = False
    revision: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    routes: Sequence[str] = ()
    attempts: tuple[Attempt, ...] = ()

    @property
    def attempt(self) -> Attempt | None:
        """Return the newest attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def is_open(self) -> bool:
        return self.status in TASK.open

    def is_late(self, now: int) -> bool:
        """Return True if the deadline has passed."""
        return now > self.deadline_at


class AttemptResolution(NamedTuple):
    """The events of a resolution for the attempt and for its task, and the reason of the next attempt, if any."""

    event: str
    resolves: str
    retried_as: str = ""


COMPLETED, FAILED = "completed", "failed"
CLAIM_EXPIRED, CANCELED, DEADLINE = "claim-expired", "canceled", "deadline-exceeded"

ATTEMPT_RESOLUTIONS = {
    COMPLETED: AttemptResolution("complete", "complete"),
    FAILED: AttemptResolution("fail_for_good", "fail"),
    "worker-shutdown": AttemptResolution("fail", "fail", "retry"),
    "intermittent-task": AttemptResolution("fail", "fail", "task-retry"),
    "malformed-payload": AttemptResolution("fail_for_good", "fail"),
    "resource-unavailable": AttemptResolution("fail_for_good", "fail"),
    "internal-error": AttemptResolution("fail_for_good", "fail"),
    CLAIM_EXPIRED: AttemptResolution("expire", "time_out", "retry"),
    CANCELED: AttemptResolution("cancel", "cancel"),
    DEADLINE: AttemptResolution("expire", "time_out"),
}

EXCEPTIONS = (
    "worker-shutdown", "malformed-payload", "resource-unavailable", "internal-error", "intermittent-task",
)  # fmt: skip
"""Reasons that a worker may report besides completed and failed."""

SCHEDULED, RERUN, PLACEHOLDER = "scheduled", "rerun", "exception"
"""Causes of attempts besides retries.

A placeholder ends when it starts: it records how a task ended that never became pending.
"""

MAX_ATTEMPTS = 50


@dataclass(frozen=True, slots=True)
class OpenStandaloneAttempt:
    """Another try at the task."""

    attempt: Attempt

    def after(self, standalone: StandaloneTask) -> StandaloneTask:
        return fast_replace(standalone, attempts=(*standalone.attempts, self.attempt))


@dataclass(frozen=True, slots=True)
class TransitionStandaloneAttempt:
    """The newest attempt goes through an event of its life; `facts` are fields that change with it."""

    event: str
    at: int
    facts: dict[str, Any] = field(default_factory=dict)

    def after(self, standalone: StandaloneTask) -> StandaloneTask:
        last = standalone.attempts[-1]
        status = ATTEMPT.after(last.status, self.event)
        ended = {"ended_at": self.at, "due_at": NEVER} if status in ATTEMPT.final else {}
        moved = fast_replace(last, status=status, **{"updated_at": self.at, **ended, **self.facts})
        return fast_replace(standalone, attempts=(*standalone.attempts[:-1], moved))


@dataclass(frozen=True, slots=True)
class UpdateStandaloneAttempt:
    """Facts of the newest attempt change without an event of its life."""

    facts: dict[str, Any]

    def after(self, standalone: StandaloneTask) -> StandaloneTask:
        return fast_replace(
            standalone, attempts=(*standalone.attempts[:-1], fast_replace(standalone.attempts[-1], **self.facts))
        )


@dataclass(frozen=True, slots=True)
class TransitionTask:
    """Apply a state change to the task, which wakes after its deadline and grace while it is open."""

    event: str

    def after(self, standalone: StandaloneTask) -> StandaloneTask:
        status = TASK.after(standalone.status, self.event)
        is_final = status in TASK.final
        wake_at = NEVER if is_final else standalone.deadline_at + standalone.grace_ms
        return fast_replace(
            standalone, status=status, wake_at=wake_at, ever_resolved=standalone.ever_resolved or is_final
        )


@dataclass(frozen=True, slots=True)
class UpdateStandaloneTask:
    """Facts of the task change without an event of its life."""

    facts: dict[str, Any]

    def after(self, standalone: StandaloneTask) -> StandaloneTask:
        return fast_replace(standalone, **self.facts)


@dataclass(frozen=True, slots=True)
class SatisfyDependency:
    """One thing that the task depends on is done."""

    required_id: str

    def after(self, standalone: StandaloneTask) -> StandaloneTask:
        return standalone


@dataclass(frozen=True, slots=True)
class PublishMessage:
    """Announce the task in its current state: an attempt by its number, or the task itself."""

    about: str
    number: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def after(self, standalone: StandaloneTask) -> StandaloneTask:
        return standalone


@dataclass(frozen=True, slots=True)
class PublishResolution:
    """Notify dependent tasks and the task group that the task is resolved."""

    reason: str

    def after(self, standalone: StandaloneTask) -> StandaloneTask:
        return standalone


Effect = (
    OpenStandaloneAttempt
    | TransitionStandaloneAttempt
    | UpdateStandaloneAttempt
    | TransitionTask
    | UpdateStandaloneTask
    | SatisfyDependency
    | PublishMessage
    | PublishResolution
)


def apply_effects(standalone: StandaloneTask, effects: Iterable[Effect]) -> StandaloneTask:
    """Return the snapshot after the effects."""
    for effect in effects:
        standalone = effect.after(standalone)
    return standalone
