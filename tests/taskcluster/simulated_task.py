"""A standalone task in memory, simulated claims and sweeps, and the invariants of every decision."""

from itertools import pairwise

from conductor_app.core.primitives import fast_replace
from conductor_app.core.snapshot import NEVER
from conductor_app.core.states import BLOCKED, LEASED, TASK
from conductor_app.taskcluster.core import decisions
from conductor_app.taskcluster.core.decisions import Command, apply_command, no_command
from conductor_app.taskcluster.core.snapshot import ATTEMPT_RESOLUTIONS, MAX_ATTEMPTS, StandaloneTask

NOON = 1_803_902_400_000
LEASE_MS, DEADLINE_MS, GRACE_MS = 20_000, 300_000, 60_000


class StandaloneTaskInMemory:
    """A standalone task with simulated claims and timers."""

    def __init__(self, retries: int = 5, waits: bool = False) -> None:
        self.now = NOON
        self.snapshot = StandaloneTask(
            id="task",
            group_id="group",
            queue="proj/linux",
            deadline_at=NOON + DEADLINE_MS,
            expires_at=NOON + 10 * DEADLINE_MS,
            created_at=NOON,
            wake_at=NOON + DEADLINE_MS + GRACE_MS,
            grace_ms=GRACE_MS,
            lease_ms=LEASE_MS,
            retries=retries,
            retries_left=retries,
            waits=waits,
        )
        self.apply_command_and_check(decisions.define_task)

    def apply_command_and_check(self, command: Command = no_command) -> None:
        """Apply a command and its consequences, and check the invariants."""
        before, self.snapshot = self.snapshot, apply_command(self.snapshot, command, self.now).after
        assert find_violations(before, self.snapshot, self.now) == []

    def claim(self, worker: str = "here/w1") -> bool:
        """Claim the open attempt, as the store does. Return whether there was one to claim."""
        last = self.snapshot.attempt
        if last is None or last.status != "PENDING" or last.ends_at <= self.now:
            return False
        ends_at = self.now + last.lease_ms
        taken = {"worker": worker, "started_at": self.now, "lease_ends_at": ends_at, "due_at": ends_at}
        self.snapshot = fast_replace(
            self.snapshot, attempts=(*self.snapshot.attempts[:-1], fast_replace(last, status=LEASED, **taken))
        )
        return True

    def later(self, ms: int) -> None:
        """Advance the time and handle the timers that are due."""
        self.now += ms
        self.apply_command_and_check()

    @property
    def attempt_results(self) -> list[tuple[str, str, str]]:
        """Status, cause and reason of each attempt."""
        return [(a.status, a.cause, a.reason) for a in self.snapshot.attempts]


def find_violations(before: StandaloneTask, after: StandaloneTask, now: int) -> list[str]:
    """Return the violated invariants of a task after a decision."""
    attempts, violations = after.attempts, []
    violations += ["a number is missing"] if [a.number for a in attempts] != list(range(len(attempts))) else []
    violations += ["an earlier attempt is open"] if any(a.is_open for a in attempts[:-1]) else []
    ended = [a for a in before.attempts if not a.is_open]
    violations += ["an ended attempt has changed"] if list(attempts[: len(ended)]) != ended else []
    violations += ["too many attempts"] if len(attempts) > MAX_ATTEMPTS else []
    violations += (
        ["the number of remaining retries is out of bounds"] if not 0 <= after.retries_left <= after.retries else []
    )
    is_blocked, is_active = not attempts, bool(attempts) and attempts[-1].is_open
    violations += ["BLOCKED contradicts the attempts"] if (after.status == BLOCKED) != is_blocked else []
    violations += ["ACTIVE contradicts the attempts"] if (after.status == "ACTIVE") != is_active else []
    violations += (
        ["the timer contradicts the status"] if (after.status in TASK.final) != (after.wake_at == NEVER) else []
    )
    violations += ["ever_resolved was reset"] if before.ever_resolved and not after.ever_resolved else []
    for last, following in pairwise(attempts):
        expected_cause = ATTEMPT_RESOLUTIONS[last.reason].retried_as
        if following.cause != "rerun" and following.cause != expected_cause:
            violations.append(f"{following.cause} after {last.reason}")
    violations += ["the decision left effects to request"] if apply_command(after, no_command, now).effects else []
    return violations
