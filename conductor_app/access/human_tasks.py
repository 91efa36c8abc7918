"""Who may do what with tasks that wait for a person: asked by the pages and by the Human Tasks API alike."""

from django.db.models import QuerySet

from .access_types import EXECUTE, READ, TASK_DEF, UPDATE, WORKFLOW, WORKFLOW_DEF, Right
from .conductor_auth import Actor
from .permissions import Thing, filter_allowed, is_allowed, missing_permission_error

SEES: tuple[Right, ...] = ((READ, WORKFLOW_DEF), (READ, WORKFLOW), (EXECUTE, TASK_DEF))
ANSWERS: tuple[Right, ...] = ((EXECUTE, TASK_DEF), (EXECUTE, WORKFLOW_DEF), (UPDATE, WORKFLOW), (EXECUTE, WORKFLOW))
"""To claim, release, reassign, skip, save an output and complete: what reporting on the task takes by its reference."""


FIELDS = {WORKFLOW_DEF: "run__name", WORKFLOW: "run_id", TASK_DEF: "task__name"}
"""Where an attempt has the name of what there are rights over."""


def visible_human_tasks(actor: Actor, attempts: QuerySet) -> QuerySet:
    """The attempts at HUMAN tasks that the actor may look at."""
    return filter_allowed(actor, attempts, {right: FIELDS[right[1]] for right in (*SEES, *ANSWERS)})


def can_view_human_task(actor: Actor, thing: Thing) -> bool:
    """Whether the actor may look at this task."""
    return is_allowed(actor, (*SEES, *ANSWERS), thing)


def can_complete_human_task(actor: Actor, thing: Thing) -> bool:
    """Whether the actor may claim, hand on and complete this task."""
    return is_allowed(actor, ANSWERS, thing)


def require_completion_right(actor: Actor, thing: Thing) -> None:
    """Raise Forbidden, naming the missing permission, unless the actor may answer this task."""
    if not can_complete_human_task(actor, thing):
        raise missing_permission_error(actor, ANSWERS, thing)


def require_view_right(actor: Actor, thing: Thing) -> None:
    """Raise Forbidden, naming the missing permission, unless the actor may look at this task."""
    if not can_view_human_task(actor, thing):
        raise missing_permission_error(actor, SEES, thing)
