"""What is hidden before it is written: the values under the names that a definition masks, at every level."""

import json
import re
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

from .definition import Definition
from .expressions.walking import with_texts_replaced

MARK = "sealed-by-conductor:"
"""What a sealed value begins with. Whoever reads rows without opening them sees `***` in its place."""
HIDDEN = "***"
DATA, DOCUMENT = ("given", "input"), "document"
"""In the memo of a task: inputs that it was given, and the document of the branch that it heads."""
SEALED_TEXT = re.compile(rf'"{re.escape(MARK)}[^"]*(?:"|$)')


def masked_names(definition: Definition) -> frozenset[str]:
    """The names whose values are sealed in the payloads of this definition's runs."""
    return masked_by(definition.document)


def masked_by(document: Mapping[str, Any]) -> frozenset[str]:
    """The same, of a definition's document."""
    names = document.get("maskedFields")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def sealed(value: Any, names: frozenset[str], seal: Callable[[str], str]) -> Any:
    """A copy of the value in which what stands under these names is sealed; `seal` makes one text of another."""
    if not names or not isinstance(value, dict | list):
        return value
    copied = value.copy()
    pending: list[Any] = [copied]
    while pending:
        container = pending.pop()
        for key, item in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if isinstance(container, dict) and key in names:
                if item is not None:
                    container[key] = MARK + seal(json.dumps(item, default=str))
            elif isinstance(item, dict | list):
                container[key] = inner = item.copy()
                pending.append(inner)
    return copied


def unhidden(value: Any, before: Any) -> Any:
    """A copy of the value in which what reads `***`, because it was sealed before, stands sealed again."""
    if isinstance(value, dict):
        old = before if isinstance(before, dict) else {}
        return {key: unhidden(item, old.get(key)) for key, item in value.items()}
    if isinstance(value, list):
        old_items = before if isinstance(before, list) else []
        return [unhidden(item, old) for item, old in zip_longest(value, old_items[: len(value)])]
    return before if value == HIDDEN and isinstance(before, str) and before.startswith(MARK) else value


def as_it_was(value: Any, before: Any, names: frozenset[str]) -> Any:
    """A copy of the value in which what reads `***` under one of these names is what stood there before."""
    if not names:
        return value
    if isinstance(value, dict):
        old = before if isinstance(before, dict) else {}
        return {
            key: old[key] if item == HIDDEN and key in names and key in old else as_it_was(item, old.get(key), names)
            for key, item in value.items()
        }
    if isinstance(value, list):
        old_items = before if isinstance(before, list) else []
        return [as_it_was(item, old, names) for item, old in zip_longest(value, old_items[: len(value)])]
    return value


def resealed(value: Any, before: Any, names: frozenset[str], seal: Callable[[str], str]) -> Any:
    """A copy of the value, sealed like the one before it: what reads `***` where something was sealed stays that."""
    if isinstance(value, dict):
        old = before if isinstance(before, dict) else {}
        return {
            key: _sealed_as_before(item, old.get(key), seal)
            if key in names and item is not None
            else resealed(item, old.get(key), names, seal)
            for key, item in value.items()
        }
    if isinstance(value, list):
        old_items = before if isinstance(before, list) else []
        return [resealed(item, old, names, seal) for item, old in zip_longest(value, old_items[: len(value)])]
    return value


def _sealed_as_before(value: Any, before: Any, seal: Callable[[str], str]) -> str:
    if value == HIDDEN and isinstance(before, str) and before.startswith(MARK):
        return before
    return MARK + seal(json.dumps(value, default=str))


def mask_step_state(step_state: Mapping[str, Any], names: frozenset[str], seal: Callable[[str], str]) -> dict[str, Any]:
    """What a task remembers, its data sealed: the inputs that it was given, and those of the steps of its branch."""
    if not names:
        return dict(step_state)
    data = {name: sealed(step_state[name], names, seal) for name in DATA if name in step_state}
    return {
        **step_state,
        **data,
        **({DOCUMENT: _sealed_inputs(step_state[DOCUMENT], names, seal)} if DOCUMENT in step_state else {}),
    }


def _sealed_inputs(document: Any, names: frozenset[str], seal: Callable[[str], str]) -> Any:
    """A step's document in which the inputs of all steps are sealed, and nothing else."""
    copied = document.copy()
    pending = [copied]
    while pending:
        container = pending.pop()
        for key, item in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if key == "inputParameters":
                container[key] = sealed(item, names, seal)
            elif isinstance(item, dict | list):
                container[key] = inner = item.copy()
                pending.append(inner)
    return copied


def shown_text(text: str) -> str:
    """The same of a value that is JSON text, whole or cut."""
    return SEALED_TEXT.sub(f'"{HIDDEN}"', text) if MARK in text else text


def masked(value: Any, definition: Definition) -> Any:
    """A copy of the value for those outside who are told of a run: what its definition masks reads `***`."""
    names = masked_names(definition)
    return shown(sealed(value, names, lambda text: "")) if names else value


def opened(value: Any, open_: Callable[[str], str]) -> Any:
    """A copy of the value with what was sealed put in again; what `open_` refuses with ValueError reads `***`."""
    return with_texts_replaced(value, lambda text: _opened(text, open_), holding=MARK)


def _opened(text: str, open_: Callable[[str], str]) -> Any:
    if not text.startswith(MARK):
        return text
    try:
        return json.loads(open_(text.removeprefix(MARK)))
    except ValueError:
        return HIDDEN


def shown(value: Any) -> Any:
    """A copy of the value for people and clients: what was sealed reads `***`."""
    return with_texts_replaced(value, lambda text: HIDDEN if text.startswith(MARK) else text, holding=MARK)
