"""What a decision on a stand-alone task may ask for. Each effect knows how it changes the snapshot."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..snapshot import NEVER, Attempt
from ..states import ATTEMPT, TASK
from ..values import replace
from .snapshot import Solo


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """Another try at the task."""

    attempt: Attempt

    def after(self, solo: Solo) -> Solo:
        return replace(solo, attempts=(*solo.attempts, self.attempt))


@dataclass(frozen=True, slots=True)
class MoveAttempt:
    """The newest attempt goes through an event of its life; `facts` are fields that change with it."""

    event: str
    at: int
    facts: dict[str, Any] = field(default_factory=dict)

    def after(self, solo: Solo) -> Solo:
        last = solo.attempts[-1]
        status = ATTEMPT.after(last.status, self.event)
        ended = {"ended_at": self.at, "due_at": NEVER} if status in ATTEMPT.final else {}
        moved = replace(last, status=status, **{"updated_at": self.at, **ended, **self.facts})
        return replace(solo, attempts=(*solo.attempts[:-1], moved))


@dataclass(frozen=True, slots=True)
class UpdateAttempt:
    """Facts of the newest attempt change without an event of its life."""

    facts: dict[str, Any]

    def after(self, solo: Solo) -> Solo:
        return replace(solo, attempts=(*solo.attempts[:-1], replace(solo.attempts[-1], **self.facts)))


@dataclass(frozen=True, slots=True)
class MoveTask:
    """The task goes through an event of its life. Its deadline rings while it is open."""

    event: str

    def after(self, solo: Solo) -> Solo:
        status = TASK.after(solo.status, self.event)
        is_final = status in TASK.final
        wake_at = NEVER if is_final else solo.deadline_at + solo.grace_ms
        return replace(solo, status=status, wake_at=wake_at, ever_resolved=solo.ever_resolved or is_final)


@dataclass(frozen=True, slots=True)
class UpdateTask:
    """Facts of the task change without an event of its life."""

    facts: dict[str, Any]

    def after(self, solo: Solo) -> Solo:
        return replace(solo, **self.facts)


@dataclass(frozen=True, slots=True)
class Satisfy:
    """One thing that the task depends on is done."""

    required_id: str

    def after(self, solo: Solo) -> Solo:
        return solo


@dataclass(frozen=True, slots=True)
class Tell:
    """Others are told of the task as it is at this point: of an attempt by its number, or of the task alone."""

    about: str
    number: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def after(self, solo: Solo) -> Solo:
        return solo


@dataclass(frozen=True, slots=True)
class Resolved:
    """What depends on the task, and its group, hear that it is resolved."""

    reason: str

    def after(self, solo: Solo) -> Solo:
        return solo


Effect = OpenAttempt | MoveAttempt | UpdateAttempt | MoveTask | UpdateTask | Satisfy | Tell | Resolved


def evolve(solo: Solo, effects: Iterable[Effect]) -> Solo:
    """The snapshot after the effects."""
    for effect in effects:
        solo = effect.after(solo)
    return solo
