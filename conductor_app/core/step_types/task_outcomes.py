"""Outcomes of finished tasks for joins and loops."""

from ..data_requests import TaskOutcome
from ..decision_context import DecisionContext
from ..snapshot import Task


def outcome_of(task: Task, ctx: DecisionContext) -> TaskOutcome:
    """Return the outcome of a task in the snapshot."""
    return TaskOutcome(
        task.key,
        task.seq,
        task.status,
        task.attempt.reason,
        task.step.name,
        task.attempt.id,
        task.lets_control_pass,
        ctx.attempt_payload(task, "output"),
    )
