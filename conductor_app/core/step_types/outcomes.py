"""What finished tasks came to, as joins and loops want to know it."""

from ..data_requests import Outcome
from ..decision_context import Knowledge
from ..snapshot import Task


def outcome_of(task: Task, know: Knowledge) -> Outcome:
    """The outcome of a task in the snapshot."""
    return Outcome(
        task.key,
        task.seq,
        task.status,
        task.attempt.reason,
        task.memo.get("name", task.step.name),
        task.attempt.id,
        task.lets_control_pass,
        know.attempt_payload(task, "output"),
    )
