"""Step types: each class with a `type` in one of these modules is in the table that finds them."""

from collections.abc import Iterator
from types import ModuleType

from ..decision_context import DecisionContext
from ..definition import DEFAULT_TYPE, STEP_STRUCTURES, Key, Step
from ..effects import Effect
from ..secret_places import mark_secrets
from ..snapshot import Task
from . import ai, base, decisions, forks, loops, sub_workflows, try_catch, waiting, worker_tasks
from .ai import AiTask
from .base import RunEnding, StepType

MODULES = (base, worker_tasks, decisions, forks, loops, try_catch, sub_workflows, waiting, ai)
STEP_TYPES: dict[str, StepType] = {}
"""The types that this server executes."""
DECLARED_TYPES: dict[str, StepType] = {}
"""These, and the types of AI steps on a server that does not execute them."""


def enter(step: Step, key: Key, ctx: DecisionContext, now: int) -> Iterator[Effect]:
    """Return the effects of entering a step, as the type that it is executed as.

    Raises:
        StepRefused: when the step cannot be executed.
    """
    executed = step_type_of(step.type).as_executed(step, key, ctx, now)
    effects = step_type_of(executed.type).enter(executed, key, ctx, now)
    return mark_secrets(effects, ctx) if executed.secrets else effects


def run_ending(task: Task) -> RunEnding | None:
    """Return how a task ends its run, if it does."""
    return step_type_of(task.step.type).run_ending(task)


def forked_references(task: Task) -> tuple[str, ...]:
    """Return the references of the dynamic branches that a task has made."""
    return step_type_of(task.step.type).forked_references(task)


def register(step_type: StepType) -> None:
    DECLARED_TYPES[step_type.type] = step_type
    STEP_TYPES[step_type.type] = step_type
    STEP_STRUCTURES[step_type.type] = step_type


def unregister_ai_types() -> None:
    """Remove the types of AI steps, on a server that does not execute them. Remote workers may poll for their tasks."""
    for step_type in [step_type for step_type in STEP_TYPES.values() if isinstance(step_type, AiTask)]:
        del STEP_TYPES[step_type.type], STEP_STRUCTURES[step_type.type]


def step_type_of(type: str) -> StepType:
    """Return the step type of this name. Workers execute the tasks of a type that is not registered."""
    return STEP_TYPES.get(type) or STEP_TYPES[DEFAULT_TYPE]


def register_types(module: ModuleType) -> None:
    """Register each class with a `type` that a module defines."""
    for defined in list(vars(module).values()):
        # Base classes have no type of their own, and names that a module imports are those of another one.
        is_step_type = isinstance(defined, type) and issubclass(defined, StepType) and "type" in vars(defined)
        if is_step_type and defined.__module__ == module.__name__:
            register(defined())


for module in MODULES:
    register_types(module)
