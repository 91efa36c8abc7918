"""State tables of attempts, tasks, runs, failure groups and bulk operations: (status, event) → status.

A status is only ever assigned from these tables.
"""

from .errors import NotAllowedInState

PENDING, LEASED = "PENDING", "LEASED"
COMPLETED, FAILED, FAILED_FOR_GOOD = "COMPLETED", "FAILED", "FAILED_FOR_GOOD"
EXPIRED, CANCELED, SKIPPED = "EXPIRED", "CANCELED", "SKIPPED"
BLOCKED, ACTIVE, COMPLETED_WITH_ERRORS, TIMED_OUT = "BLOCKED", "ACTIVE", "COMPLETED_WITH_ERRORS", "TIMED_OUT"
RUNNING, PAUSED, TERMINATED = "RUNNING", "PAUSED", "TERMINATED"


class StateMachine:
    """State table with its statuses and the set of open ones."""

    def __init__(self, name: str, moves: dict[tuple[str, str], str], open_statuses: tuple[str, ...]) -> None:
        self.name, self.moves, self.open = name, moves, frozenset(open_statuses)
        self.statuses = frozenset(s for s, _ in moves) | frozenset(moves.values())
        self.final = self.statuses - self.open

    def after(self, status: str, event: str) -> str:
        """Return the status after the event.

        Raises:
            NotAllowedInState: when the table has no such transition.
        """
        try:
            return self.moves[status, event]
        except KeyError:
            raise NotAllowedInState(f"A {self.name} that is {status} cannot {event.replace('_', ' ')}.") from None

    def allows(self, status: str, event: str) -> bool:
        return (status, event) in self.moves


ATTEMPT = StateMachine(
    "task",
    {
        (PENDING, "claim"): LEASED,
        (PENDING, "complete"): COMPLETED,
        (PENDING, "fail"): FAILED,
        (PENDING, "fail_for_good"): FAILED_FOR_GOOD,
        (PENDING, "hand_back"): PENDING,
        (PENDING, "renew"): PENDING,
        (PENDING, "expire"): EXPIRED,
        (PENDING, "cancel"): CANCELED,
        (LEASED, "renew"): LEASED,
        (LEASED, "hand_back"): PENDING,
        (LEASED, "complete"): COMPLETED,
        (LEASED, "fail"): FAILED,
        (LEASED, "fail_for_good"): FAILED_FOR_GOOD,
        (LEASED, "expire"): EXPIRED,
        (LEASED, "cancel"): CANCELED,
        (COMPLETED, "reopen"): LEASED,
        (FAILED, "reopen"): LEASED,
        (FAILED_FOR_GOOD, "reopen"): LEASED,
        (EXPIRED, "reopen"): LEASED,
        (CANCELED, "reopen"): LEASED,
    },
    open_statuses=(PENDING, LEASED),
)

TASK = StateMachine(
    "task",
    {
        (BLOCKED, "release"): ACTIVE,
        (BLOCKED, "time_out"): TIMED_OUT,
        (BLOCKED, "cancel"): CANCELED,
        (ACTIVE, "complete"): COMPLETED,
        (ACTIVE, "complete_with_errors"): COMPLETED_WITH_ERRORS,
        (ACTIVE, "fail"): FAILED,
        (ACTIVE, "time_out"): TIMED_OUT,
        (ACTIVE, "cancel"): CANCELED,
        (ACTIVE, "skip"): SKIPPED,
        (COMPLETED, "reopen"): ACTIVE,
        (COMPLETED_WITH_ERRORS, "reopen"): ACTIVE,
        (FAILED, "reopen"): ACTIVE,
        (TIMED_OUT, "reopen"): ACTIVE,
        (CANCELED, "reopen"): ACTIVE,
    },
    open_statuses=(BLOCKED, ACTIVE),
)

RUN = StateMachine(
    "workflow",
    {
        (RUNNING, "pause"): PAUSED,
        (PAUSED, "pause"): PAUSED,
        (PAUSED, "resume"): RUNNING,
        (RUNNING, "complete"): COMPLETED,
        (RUNNING, "fail"): FAILED,
        (RUNNING, "time_out"): TIMED_OUT,
        (PAUSED, "time_out"): TIMED_OUT,
        (RUNNING, "terminate"): TERMINATED,
        (PAUSED, "terminate"): TERMINATED,
        (FAILED, "terminate"): TERMINATED,
        (TIMED_OUT, "terminate"): TERMINATED,
        (TERMINATED, "terminate"): TERMINATED,
        (FAILED, "retry"): RUNNING,
        (TIMED_OUT, "retry"): RUNNING,
        (TERMINATED, "retry"): RUNNING,
        (COMPLETED, "rerun"): RUNNING,
        (FAILED, "rerun"): RUNNING,
        (TIMED_OUT, "rerun"): RUNNING,
        (TERMINATED, "rerun"): RUNNING,
        (COMPLETED, "restart"): RUNNING,
        (FAILED, "restart"): RUNNING,
        (TIMED_OUT, "restart"): RUNNING,
        (TERMINATED, "restart"): RUNNING,
        (COMPLETED, "reopen"): RUNNING,
        (FAILED, "reopen"): RUNNING,
        (TIMED_OUT, "reopen"): RUNNING,
        (TERMINATED, "reopen"): RUNNING,
    },
    open_statuses=(RUNNING, PAUSED),
)

UNHANDLED, ACKNOWLEDGED, RESOLVED, IGNORED, REGRESSED = "OPEN", "ACKNOWLEDGED", "RESOLVED", "IGNORED", "REGRESSED"
FAILURE = StateMachine(
    "failure group",
    {
        (UNHANDLED, "acknowledge"): ACKNOWLEDGED,
        (UNHANDLED, "resolve"): RESOLVED,
        (UNHANDLED, "ignore"): IGNORED,
        (ACKNOWLEDGED, "resolve"): RESOLVED,
        (ACKNOWLEDGED, "ignore"): IGNORED,
        (ACKNOWLEDGED, "reopen"): UNHANDLED,
        (REGRESSED, "acknowledge"): ACKNOWLEDGED,
        (REGRESSED, "resolve"): RESOLVED,
        (REGRESSED, "ignore"): IGNORED,
        (RESOLVED, "recur"): REGRESSED,
        (RESOLVED, "reopen"): UNHANDLED,
        (IGNORED, "reopen"): UNHANDLED,
    },
    open_statuses=(UNHANDLED, ACKNOWLEDGED, REGRESSED),
)

GATHERING, CANARY, WATCHING, WORKING, DONE, STOPPED = "GATHERING", "CANARY", "WATCHING", "WORKING", "DONE", "STOPPED"
BULK = StateMachine(
    "bulk operation",
    {
        (GATHERING, "try"): CANARY,
        (GATHERING, "work"): WORKING,
        (GATHERING, "finish"): DONE,
        (GATHERING, "pause"): PAUSED,
        (GATHERING, "stop"): STOPPED,
        (CANARY, "watch"): WATCHING,
        (CANARY, "pause"): PAUSED,
        (CANARY, "stop"): STOPPED,
        (WATCHING, "work"): WORKING,
        (WATCHING, "pause"): PAUSED,
        (WATCHING, "stop"): STOPPED,
        (WORKING, "finish"): DONE,
        (WORKING, "pause"): PAUSED,
        (WORKING, "stop"): STOPPED,
        (PAUSED, "gather"): GATHERING,
        (PAUSED, "try"): CANARY,
        (PAUSED, "watch"): WATCHING,
        (PAUSED, "work"): WORKING,
        (PAUSED, "stop"): STOPPED,
    },
    open_statuses=(GATHERING, CANARY, WATCHING, WORKING, PAUSED),
)
"""State of an operation on many runs: they are collected, a canary runs first, then the others follow."""
