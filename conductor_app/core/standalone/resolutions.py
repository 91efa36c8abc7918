"""How an attempt at a stand-alone task may end: one row a reason."""

from typing import NamedTuple


class AttemptResolution(NamedTuple):
    """The event of the attempt's life, that of its task's life, and as what it is tried again, if it is at all."""

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
"""What a worker may say beside completed and failed."""

SCHEDULED, RERUN, PLACEHOLDER = "scheduled", "rerun", "exception"
"""Why an attempt was opened, beside the retries above. A placeholder ends in the moment in which it begins: it says how
a task ended that never came to its turn."""

MOST_ATTEMPTS = 50
