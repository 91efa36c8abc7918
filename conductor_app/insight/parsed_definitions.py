"""The plans that runs follow, parsed for readers."""

from functools import lru_cache

from ..core.definition import Definition
from ..core.document import read_definition
from ..core.step_tree import path_to_step
from ..models import ResolvedDefinition, Task


def parsed_definition(hash: str) -> Definition | None:
    """The definition with this hash, or None where it is not kept."""
    try:
        return _load_definition(hash)
    except ResolvedDefinition.DoesNotExist:
        return None


@lru_cache(maxsize=200)
def _load_definition(hash: str) -> Definition:
    # Plans never change, so one look is enough.
    return read_definition(ResolvedDefinition.objects.get(pk=hash).document, hash=hash)


def step_after(hash: str, ref: str) -> str:
    """The step that follows in the same sequence; empty where none does, or where the plan does not show the step."""
    definition = parsed_definition(hash)
    path = path_to_step(definition.document.get("tasks") or (), ref) if definition else ()
    return next(iter(path[-1].after), "") if path else ""


def attempts_allowed(definition: Definition | None, task: Task) -> int | None:
    """How many attempts the task's policy allows; None for a step that the written plan does not show."""
    step = definition.step(task.ref) if definition else None
    return step.policy.retries + 1 if step else None
