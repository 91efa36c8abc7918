"""Parsed resolved definitions, cached for the pages."""

from functools import lru_cache

from ...core.definition import Definition
from ...core.document import read_definition
from ...core.step_tree import path_to_step
from ...models import ResolvedDefinition, Task


def parsed_definition(hash: str) -> Definition | None:
    """Return the definition with this hash, or None if it is not stored."""
    try:
        return _load_definition(hash)
    except ResolvedDefinition.DoesNotExist:
        return None


@lru_cache(maxsize=200)
def _load_definition(hash: str) -> Definition:
    # A resolved definition never changes, so it can be cached.
    return read_definition(ResolvedDefinition.objects.get(pk=hash).document, hash=hash)


def step_after(hash: str, ref: str) -> str:
    """Return the next step in the same sequence, or an empty text if there is none or `ref` is unknown."""
    definition = parsed_definition(hash)
    path = path_to_step(definition.document.get("tasks") or (), ref) if definition else ()
    return next(iter(path[-1].after), "") if path else ""


def attempts_allowed(definition: Definition | None, task: Task) -> int | None:
    """Return the attempts that the policy of a task allows, or None if the definition does not contain its step."""
    step = definition.step(task.ref) if definition else None
    return step.policy.retries + 1 if step else None
