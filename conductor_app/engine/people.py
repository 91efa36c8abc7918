"""What people do in a worker's place: they complete or fail a task by hand, with a reason that is kept."""

from typing import Any

from ..core import reports
from ..core.errors import Invalid
from ..core.reports import Report
from .change import change
from .tasks import within_limit

OUTCOMES = {"COMPLETED": "complete_task", "FAILED": "fail_task"}
"""What can be said of a task, and how the audit calls it."""


def conclude(run_id: str, attempt_id: str, outcome: str, by: str, output: dict[str, Any], reason: str = "") -> None:
    """Say what came of an open task. Raises NotFound, Invalid, and AlreadyResolved where it is over."""
    if outcome not in OUTCOMES:
        raise Invalid("A task is completed or failed by hand, nothing else.")
    said = within_limit(Report(outcome, output=output, reason=reason if outcome == "FAILED" else ""))
    change(run_id, reports.hear(attempt_id, said), by, reason, near=[attempt_id], action=OUTCOMES[outcome])
