"""The places in the input of a task at which its author wrote secrets.

A secret is resolved at these places only. Text that comes from an input, an output or a person is data, even if it is
an expression that names a secret. A place is a path into the input, and the ranges of the expressions in its text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .decision_context import DecisionContext
from .definition import Step, replace_at
from .effects import CreateTask, Effect
from .expressions import parse_template, resolve_secrets, secret_ranges_of_text
from .primitives import fast_replace
from .snapshot import Task

SECRET_PLACES = "secret_places"
"""Key in a task's step state for the places of the secrets in the input of its newest attempt."""

Keys = tuple[str | int, ...]
Place = Sequence[Any]
"""The keys of the path, and a list of ranges, each with start and end; as JSON stores them."""
ABSENT: Any = object()


def mark_secrets(effects: Iterable[Effect], ctx: DecisionContext) -> Iterator[Effect]:
    """Yield the effects of entering a step that names secrets, with the places of the secrets in its task's state.

    An input that an operator set has no places: the command that sets it keeps those that are unchanged.
    """
    for effect in effects:
        if isinstance(effect, CreateTask) and ctx.input_override(effect.task.key) is None:
            task = effect.task
            places = find_places(task.step, task.attempt.input, ctx, task.attempt.id)
            yield CreateTask(fast_replace(task, step_state={**task.step_state, SECRET_PLACES: places}))
        else:
            yield effect


def find_places(step: Step, inputs: Any, ctx: DecisionContext, attempt_id: str) -> list[Place]:
    """Return the places in the resolved inputs of a step at which its author wrote secrets.

    Raises:
        DataRequired: when a value is not loaded.
    """
    places: dict[Keys, Place] = {}
    for keys, text in written_texts(step.inputs, step.policy.input_template):
        if keys not in places and parse_template(text).secrets:
            resolved, ranges = ctx.secret_ranges(text, {"CPEWF_TASK_ID": attempt_id})
            if value_at(inputs, keys) == resolved:
                places[keys] = (list(keys), ranges)
    return list(places.values())


def places_of(task: Task, inputs: Any) -> Sequence[Place]:
    """Return the places in the input of the newest attempt of a task."""
    step, state = task.step, task.step_state
    if not step.secrets:
        return ()
    return (
        state[SECRET_PLACES]
        if SECRET_PLACES in state
        else restore_places(step.inputs, step.policy.input_template, inputs)
    )


def restore_places(written: Any, template: Any, inputs: Any) -> list[Place]:
    """Return the places in the input of a task that an earlier version created, which did not record them.

    `written`: the inputs of its step. `template`: the input template of its task definition. A text that names other or
    more secrets than its author wrote is data.
    """
    places: dict[Keys, Place] = {}
    for keys, text in written_texts(written, template):
        secrets, found = parse_template(text).secrets, value_at(inputs, keys)
        if secrets and keys not in places and isinstance(found, str):
            ranges = secret_ranges_of_text(found)
            if [found[start:end] for start, end in ranges] == secrets:
                places[keys] = (list(keys), ranges)
    return list(places.values())


def kept_places(places: Iterable[Place], before: Any, after: Any) -> list[Place]:
    """Return the places whose text is the same in both inputs."""
    return [place for place in places if value_at(before, place[0]) == value_at(after, place[0])]


def merge_places(fresh: Sequence[Place], kept: Iterable[Place]) -> list[Place]:
    """Return the fresh places, and those of the others that are elsewhere."""
    known = {tuple(keys) for keys, _ in fresh}
    return [*fresh, *(place for place in kept if tuple(place[0]) not in known)]


def resolve_places(inputs: Any, places: Iterable[Place], secret: Callable[[str], str | None]) -> Any:
    """Return the input with the secrets resolved at these places. The result is never stored.

    A missing secret becomes null, or "" within a text.
    """
    for keys, ranges in places:
        text = value_at(inputs, keys)
        if isinstance(text, str):
            inputs = replace_at(inputs, tuple(keys), resolve_secrets(text, ranges, secret))
    return inputs


def has_written_secrets_only(written: Any, resolved: Any) -> bool:
    """Return True if a resolved value names no secrets but those that the author wrote at the same places."""
    places = {tuple(keys) for keys, _ in restore_places(written, {}, resolved)}
    named = (keys for keys, text in written_texts(resolved) if "secrets" in text)
    return all(keys in places for keys in named)


def value_at(value: Any, keys: Iterable[str | int]) -> Any:
    """Return the value at a path, or ABSENT."""
    for key in keys:
        has_key = key in value if isinstance(value, Mapping) else isinstance(value, list) and key in range(len(value))
        if not has_key:
            return ABSENT
        value = value[key]
    return value


def written_texts(*documents: Any) -> Iterator[tuple[Keys, str]]:
    """Yield the texts that may name secrets, with their paths. An earlier document takes precedence."""
    for document in documents:
        pending: list[tuple[Keys, Any]] = [((), document)]
        while pending:
            keys, item = pending.pop()
            if isinstance(item, str):
                if "${" in item:
                    yield keys, item
            elif isinstance(item, Mapping):
                pending.extend(((*keys, key), inner) for key, inner in item.items())
            elif isinstance(item, list):
                pending.extend(((*keys, at), inner) for at, inner in enumerate(item))
