"""The plans that runs follow, parsed for readers."""

from functools import lru_cache

from ..core.definition import Definition
from ..core.language import read_definition
from ..models import Plan, Task


@lru_cache(maxsize=200)
def plan(hash: str) -> Definition | None:
    """The definition with this hash, or None where it is no longer kept. Plans never change, so one look is enough."""
    found = Plan.objects.filter(pk=hash).first()
    return read_definition(found.document, hash=hash) if found else None


def tries_allowed(definition: Definition | None, task: Task) -> int | None:
    """How many attempts the task's policy allows; None for a step that the written plan does not show."""
    step = definition.step(task.ref) if definition else None
    return step.policy.retries + 1 if step else None
