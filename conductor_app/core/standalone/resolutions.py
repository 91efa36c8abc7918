"""Resolutions of attempts at standalone tasks: one row per reason."""

from typing import NamedTuple


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
