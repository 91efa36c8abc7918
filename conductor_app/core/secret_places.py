"""The places in the input of a task at which its author wrote secrets, and the parts that decide who receives them.

A secret is resolved at these places only. Text that comes from an input, an output or a person is data, even if it is
an expression that names a secret. A place is a path into the input, and the ranges of the expressions in its text.

A task definition may also request secrets for each of its tasks (`runtimeMetadata`). One that is written in data, in a
branch of a dynamic fork or in an inline workflow, requests none but those that the author of the step may name.

A person who changes the input of a task can neither see its secrets nor its masked values. An input that keeps some
is refused if its receiver was changed, because the person could read them there.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .decision_context import DecisionContext
from .definition import Document, Step, map_bodies, replace_at, structure_of, walk
from .effects import CreateTask, Effect
from .errors import Invalid
from .expressions import needed_references, parse_template, resolve_secrets, secret_ranges_of_text
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


def limit_runtime_metadata(step: Document, allowed: Collection[str]) -> dict[str, Any]:
    """Return a step from data whose own task definition requests only these secrets, and the steps in it likewise."""
    limited = map_bodies(step, lambda steps: [limit_runtime_metadata(each, allowed) for each in steps])
    definition = step.get("taskDefinition")
    if isinstance(definition, Mapping) and definition.get("runtimeMetadata"):
        requested = definition["runtimeMetadata"]
        kept = [name for name in requested if name in allowed] if isinstance(requested, list) else []
        limited["taskDefinition"] = {**definition, "runtimeMetadata": kept}
    return limited


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


CONTAINERS = ("http_request", "kafka_request", "startWorkflow")
"""Inputs that contain the request of a task."""
RECEIVER_WORDS = re.compile(
    r"uri|url|host|endpoint|server|address|connection|integration|provider|broker|topic|queue|sink|domain|callback"
    r"|webhook|destination|target|recipient|bucket|proxy|script|expression|statement|query|sql|command|workflow"
)
"""Names of inputs that may decide who receives the others, for tasks of remote workers."""
RECEIVER_NAMES = frozenset(("to", "cc", "bcc", "email", "channel", "ip", "port"))


def changed_receiver(step: Step, before: Any, after: Any) -> str:
    """Return the path of a part that decides who receives the input and differs between the two, or ""."""
    old, new = dict(_receivers(step, before)), dict(_receivers(step, after))
    return next((path_text(keys) for keys in {**old, **new} if old.get(keys) != new.get(keys)), "")


def refuse_new_receiver(step: Step, before: Any, after: Any, kept: Iterable[Keys]) -> None:
    """Refuse an input that keeps secrets or masked values of the former one, and goes to another receiver.

    `kept`: the paths of these values.

    Raises:
        Invalid: when it does. The message names both paths.
    """
    place = next(iter(kept), None)
    if place is not None and (changed := changed_receiver(step, before, after)):
        raise Invalid(
            f"`{changed}` is changed, so another receiver would get the secret or masked value at `{path_text(place)}`."
            f" Leave `{changed}` as it was, or send a value of your own for `{path_text(place)}`."
        )


def refuse_redirected_step(step: Step, given: Mapping[str, Any], *, has_masked: bool) -> None:
    """Refuse inputs that a person sets for a step that has not begun, if its secrets would go to another receiver.

    `has_masked`: the run has masked values, which other inputs of the step may read.

    Raises:
        Invalid: when they would.
    """
    before = {**step.policy.input_template, **step.inputs}
    others = {name: value for name, value in before.items() if name not in given}
    kept = [keys for keys, text in written_texts(others) if has_masked or parse_template(text).secrets]
    refuse_new_receiver(step, before, {**before, **given}, kept)


def receiver_from_data(steps: Any) -> str:
    """Return the reference of a step whose receiver depends on data of the run, or ""."""
    for spot in walk(steps):
        inputs = spot.step.get("inputParameters")
        step_type = str(spot.step.get("type") or "")
        named = spot.step.get("dynamicTaskNameParam")
        found = _receivers_of_type(step_type, inputs, named if isinstance(named, str) else "")
        if any(needed_references(value) - {("workflow", "env")} for _, value in found):
            return spot.ref
    return ""


def path_text(keys: Iterable[str | int]) -> str:
    """Return a path as text, such as `http_request.headers.Authorization`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


def _receivers(step: Step, inputs: Any) -> Iterator[tuple[Keys, Any]]:
    named = step.document.get("dynamicTaskNameParam")
    return _receivers_of_type(step.type, inputs, named if isinstance(named, str) else "")


def _receivers_of_type(step_type: str, inputs: Any, named: str) -> Iterator[tuple[Keys, Any]]:
    if named:
        yield (named,), value_at(inputs, (named,))
    declared = structure_of(step_type).receiving_inputs
    if declared is None:
        yield from _named_like_receivers(inputs)
        return
    for name in declared:
        for keys in ((name,), *((container, name) for container in CONTAINERS)):
            value = value_at(inputs, keys)
            if isinstance(value, (str, int, float, list, dict)):
                yield keys, value


def _named_like_receivers(inputs: Any) -> Iterator[tuple[Keys, Any]]:
    pending: list[tuple[Keys, Any]] = [((), inputs)]
    while pending:
        keys, item = pending.pop()
        name = re.sub(r"[^a-z]", "", str(keys[-1]).lower()) if keys else ""
        if keys and (name in RECEIVER_NAMES or RECEIVER_WORDS.search(name)):
            yield keys, json.dumps(item, sort_keys=True, default=str) if isinstance(item, dict | list) else item
        elif isinstance(item, Mapping):
            pending.extend(((*keys, key), inner) for key, inner in item.items())
        elif isinstance(item, list):
            pending.extend(((*keys, at), inner) for at, inner in enumerate(item))
        elif isinstance(item, str) and "://" in item:
            yield keys, item
