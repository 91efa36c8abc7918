"""A stand-alone task as a value, what its workers and the store would do to it, and what must always hold of it."""

from itertools import pairwise

from conductor_app.core.frozen import fast_replace
from conductor_app.core.snapshot import NEVER
from conductor_app.core.standalone import commands
from conductor_app.core.standalone.decide import Command, apply_command, no_command
from conductor_app.core.standalone.resolutions import ATTEMPT_RESOLUTIONS, MAX_ATTEMPTS
from conductor_app.core.standalone.snapshot import StandaloneTask
from conductor_app.core.states import BLOCKED, LEASED, TASK

NOON = 1_803_902_400_000
LEASE_MS, DEADLINE_MS, GRACE_MS = 20_000, 300_000, 60_000


class StandaloneTaskInMemory:
    """One task, from its definition on."""

    def __init__(self, retries: int = 5, waits: bool = False) -> None:
        self.now, self.told = NOON, []
        standalone = StandaloneTask(
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
        self.standalone = standalone
        self.apply_command_and_check(commands.define_task)

    def apply_command_and_check(self, command: Command = no_command) -> None:
        """A command, and what follows from it."""
        before, self.standalone = self.standalone, apply_command(self.standalone, command, self.now).after
        assert law_violations(before, self.standalone, self.now) == []

    def claimed(self, worker: str = "here/w1") -> bool:
        """What the claim does to the row; whether there was something to claim."""
        last = self.standalone.attempt
        if last is None or last.status != "PENDING" or last.ends_at <= self.now:
            return False
        ends_at = self.now + last.lease_ms
        taken = {"worker": worker, "started_at": self.now, "lease_ends_at": ends_at, "due_at": ends_at}
        self.standalone = fast_replace(
            self.standalone, attempts=(*self.standalone.attempts[:-1], fast_replace(last, status=LEASED, **taken))
        )
        return True

    def later(self, ms: int) -> None:
        """Time passes, and the sweeps look at what is due."""
        self.now += ms
        self.apply_command_and_check()

    @property
    def runs(self) -> list[tuple[str, str, str]]:
        """Status, why it was opened and why it ended, for each attempt."""
        return [(a.status, a.cause, a.reason) for a in self.standalone.attempts]


def law_violations(before: StandaloneTask, after: StandaloneTask, now: int) -> list[str]:
    """Everything about a task after a decision that must never be so; empty where all is well."""
    attempts, found = after.attempts, []
    found += ["a number is missing"] if [a.number for a in attempts] != list(range(len(attempts))) else []
    found += ["an earlier attempt is open"] if any(a.is_open for a in attempts[:-1]) else []
    ended = [a for a in before.attempts if not a.is_open]
    found += ["an ended attempt has changed"] if list(attempts[: len(ended)]) != ended else []
    found += ["more attempts than there may be"] if len(attempts) > MAX_ATTEMPTS else []
    found += ["retries out of their bounds"] if not 0 <= after.retries_left <= after.retries else []
    is_blocked, is_active = not attempts, bool(attempts) and attempts[-1].is_open
    found += ["not blocked as its attempts are"] if (after.status == BLOCKED) != is_blocked else []
    found += ["not active as its attempts are"] if (after.status == "ACTIVE") != is_active else []
    found += ["its end rings"] if (after.status in TASK.final) != (after.wake_at == NEVER) else []
    found += ["it forgets that it was resolved"] if before.ever_resolved and not after.ever_resolved else []
    for last, following in pairwise(attempts):
        wanted = ATTEMPT_RESOLUTIONS[last.reason].retried_as
        if following.cause != "rerun" and following.cause != wanted:
            found.append(f"{following.cause} after {last.reason}")
    found += ["there is more to say"] if apply_command(after, no_command, now).effects else []
    return found
