"""Who receives the input of a task: the parts of it that decide to which address, connection or code the others go.

A person who changes the input of a task can neither see its secrets nor its masked values. An input whose receiver was
changed keeps neither, because the person could read them there.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .definition import Step, structure_of, walk
from .errors import Invalid
from .expressions import needed_references, parse_template
from .secret_places import Keys, value_at, written_texts

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
