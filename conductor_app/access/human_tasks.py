"""Authorization for human tasks, shared by the pages and the Human Tasks API."""

from django.db.models import QuerySet

from ..models import Attempt
from .access_types import EXECUTE, READ, TASK_DEF, UPDATE, WORKFLOW, WORKFLOW_DEF, Right
from .conductor_auth import Actor
from .permissions import Target, filter_allowed, is_allowed, missing_permission_error

VIEW_RIGHTS: tuple[Right, ...] = ((READ, WORKFLOW_DEF), (READ, WORKFLOW), (EXECUTE, TASK_DEF))
COMPLETION_RIGHTS: tuple[Right, ...] = (
    (EXECUTE, TASK_DEF),
    (EXECUTE, WORKFLOW_DEF),
    (UPDATE, WORKFLOW),
    (EXECUTE, WORKFLOW),
)
"""The rights to claim, release, reassign, skip, save and complete a task: those to report on it by its reference."""


FIELD_BY_TARGET_TYPE = {WORKFLOW_DEF: "run__name", WORKFLOW: "run_id", TASK_DEF: "task__name"}
"""The field of an attempt that names the target of each type."""


def visible_human_tasks(actor: Actor, attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    """Return the attempts at HUMAN tasks that the actor may see."""
    return filter_allowed(
        actor, attempts, {right: FIELD_BY_TARGET_TYPE[right[1]] for right in (*VIEW_RIGHTS, *COMPLETION_RIGHTS)}
    )


def can_view_human_task(actor: Actor, target: Target) -> bool:
    """Return True if the actor may see this task."""
    return is_allowed(actor, (*VIEW_RIGHTS, *COMPLETION_RIGHTS), target)


def can_complete_human_task(actor: Actor, target: Target) -> bool:
    """Return True if the actor may claim, reassign and complete this task."""
    return is_allowed(actor, COMPLETION_RIGHTS, target)


def require_completion_right(actor: Actor, target: Target) -> None:
    """Check the permission to complete this task.

    Raises:
        Forbidden: when the permission is missing; the message names it.
    """
    if not can_complete_human_task(actor, target):
        raise missing_permission_error(actor, COMPLETION_RIGHTS, target)
