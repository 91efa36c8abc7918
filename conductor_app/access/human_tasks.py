"""Who may do what with tasks that wait for a person: asked by the pages and by the Human Tasks API alike."""

from django.db.models import QuerySet

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
"""To claim, release, reassign, skip, save an output and complete: what reporting on the task takes by its reference."""


FIELD_BY_TARGET_TYPE = {WORKFLOW_DEF: "run__name", WORKFLOW: "run_id", TASK_DEF: "task__name"}
"""Where an attempt has the name of what there are rights over."""


def visible_human_tasks(actor: Actor, attempts: QuerySet) -> QuerySet:
    """The attempts at HUMAN tasks that the actor may look at."""
    return filter_allowed(
        actor, attempts, {right: FIELD_BY_TARGET_TYPE[right[1]] for right in (*VIEW_RIGHTS, *COMPLETION_RIGHTS)}
    )


def can_view_human_task(actor: Actor, target: Target) -> bool:
    """Whether the actor may look at this task."""
    return is_allowed(actor, (*VIEW_RIGHTS, *COMPLETION_RIGHTS), target)


def can_complete_human_task(actor: Actor, target: Target) -> bool:
    """Whether the actor may claim, hand on and complete this task."""
    return is_allowed(actor, COMPLETION_RIGHTS, target)


def require_completion_right(actor: Actor, target: Target) -> None:
    """Raise Forbidden, naming the missing permission, unless the actor may answer this task."""
    if not can_complete_human_task(actor, target):
        raise missing_permission_error(actor, COMPLETION_RIGHTS, target)
