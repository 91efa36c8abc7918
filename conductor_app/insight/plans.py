"""The plans that runs follow, parsed for readers."""

from functools import lru_cache

from ..core.definition import Definition
from ..core.language import read_definition
from ..models import Plan, Task


def plan(hash: str) -> Definition | None:
    """The definition with this hash, or None where it is not kept."""
    try:
        return _read(hash)
    except Plan.DoesNotExist:
        return None


@lru_cache(maxsize=200)
def _read(hash: str) -> Definition:
    # Plans never change, so one look is enough.
    return read_definition(Plan.objects.get(pk=hash).document, hash=hash)


def tries_allowed(definition: Definition | None, task: Task) -> int | None:
    """How many attempts the task's policy allows; None for a step that the written plan does not show."""
    step = definition.step(task.ref) if definition else None
    return step.policy.retries + 1 if step else None
