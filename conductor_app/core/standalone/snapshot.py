"""Snapshot of a standalone task with all its attempts, as frozen values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..snapshot import NEVER, Attempt
from ..states import BLOCKED, TASK


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
    wake_at: int = NEVER  # when it is ended, because its deadline has passed
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
