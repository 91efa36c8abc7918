"""Who may do what with tasks that wait for a person: asked by the pages and by the Human Tasks API alike."""

from django.db.models import QuerySet

from .actors import Actor
from .permissions import Thing, may, missing, within
from .rights import EXECUTE, READ, TASK_DEF, UPDATE, WORKFLOW, WORKFLOW_DEF, Right

SEES: tuple[Right, ...] = ((READ, WORKFLOW_DEF), (READ, WORKFLOW), (EXECUTE, TASK_DEF))
ANSWERS: tuple[Right, ...] = ((EXECUTE, TASK_DEF), (EXECUTE, WORKFLOW_DEF), (UPDATE, WORKFLOW), (EXECUTE, WORKFLOW))
"""To claim, release, reassign, skip, save an output and complete: what reporting on the task takes by its reference."""


FIELDS = {WORKFLOW_DEF: "run__name", WORKFLOW: "run_id", TASK_DEF: "task__name"}
"""Where an attempt has the name of what there are rights over."""


def visible(actor: Actor, attempts: QuerySet) -> QuerySet:
    """The attempts at HUMAN tasks that the actor may look at."""
    return within(actor, attempts, {right: FIELDS[right[1]] for right in (*SEES, *ANSWERS)})


def may_see(actor: Actor, thing: Thing) -> bool:
    """Whether the actor may look at this task."""
    return may(actor, (*SEES, *ANSWERS), thing)


def may_answer(actor: Actor, thing: Thing) -> bool:
    """Whether the actor may claim, hand on and complete this task."""
    return may(actor, ANSWERS, thing)


def require_answer(actor: Actor, thing: Thing) -> None:
    """Raise Forbidden, naming the missing permission, unless the actor may answer this task."""
    if not may_answer(actor, thing):
        raise missing(actor, ANSWERS, thing)


def require_sight(actor: Actor, thing: Thing) -> None:
    """Raise Forbidden, naming the missing permission, unless the actor may look at this task."""
    if not may_see(actor, thing):
        raise missing(actor, SEES, thing)
