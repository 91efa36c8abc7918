"""Effects of decisions on standalone tasks. Each knows how it changes the snapshot."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..frozen import fast_replace
from ..snapshot import NEVER, Attempt
from ..states import ATTEMPT, TASK
from .snapshot import StandaloneTask


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
    """Apply a state change to the task. Its deadline is set while it is open."""

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
