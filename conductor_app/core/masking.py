"""Masking: encrypt the values under the names that a definition masks, at every depth, before they are stored."""

import json
import re
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

from .definition import Definition
from .expressions.json_text import replace_texts
from .primitives import JsonValue

MARK = "sealed-by-conductor:"
"""Prefix of an encrypted value. Readers without the key see `***` in its place."""
REDACTED = "***"
DATA, DOCUMENT = ("given", "input"), "document"
"""Keys in a task's step state: inputs set by an operator, and the document of the branch that the task heads."""
SEALED_TEXT = re.compile(rf'"{re.escape(MARK)}[^"]*(?:"|$)')


MARK_BYTES = MARK.encode()
NOT_FROM_CLIENTS = f"A value contains {MARK!r}, which only the server writes, before encrypted values."


def contains_mark(written: bytes, value: JsonValue) -> bool:
    """Return True if a value that a client sent contains the mark, which would be decrypted for its receiver.

    `written`: the value as JSON, in which an escape of a character may hide a part of the mark.
    """
    if MARK_BYTES in written:
        return True
    return b"\\u" in written and MARK in json.dumps(value, ensure_ascii=False, default=str)


def masked_names(definition: Definition) -> frozenset[str]:
    """Return the names whose values are encrypted in the payloads of this definition's runs."""
    return masked_names_of_document(definition.document)


def masked_names_of_document(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the names listed under `maskedFields` in a definition document."""
    names = document.get("maskedFields")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def mask_encrypt(value: JsonValue, names: frozenset[str], seal: Callable[[str], str]) -> Any:
    """Return a copy of the value in which the values under these names are encrypted with `seal`."""
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


def restore_masked(value: JsonValue, before: JsonValue) -> Any:
    """Return a copy of the value in which each `***` is the encrypted value that `before` has in its place."""
    if isinstance(value, dict):
        old = before if isinstance(before, dict) else {}
        return {key: restore_masked(item, old.get(key)) for key, item in value.items()}
    if isinstance(value, list):
        old_items = before if isinstance(before, list) else []
        return [restore_masked(item, old) for item, old in zip_longest(value, old_items[: len(value)])]
    return before if value == REDACTED and isinstance(before, str) and before.startswith(MARK) else value


def restore_named(value: JsonValue, before: JsonValue, names: frozenset[str]) -> Any:
    """Return a copy of the value in which each `***` under one of these names is the value of `before` again."""
    if not names:
        return value
    if isinstance(value, dict):
        old = before if isinstance(before, dict) else {}
        return {
            key: old[key]
            if item == REDACTED and key in names and key in old
            else restore_named(item, old.get(key), names)
            for key, item in value.items()
        }
    if isinstance(value, list):
        old_items = before if isinstance(before, list) else []
        return [restore_named(item, old, names) for item, old in zip_longest(value, old_items[: len(value)])]
    return value


def restored_paths(value: JsonValue, restored: Any) -> list[tuple[str | int, ...]]:
    """Return the paths at which a value has `***` and the restored value has something else."""
    found: list[tuple[str | int, ...]] = []
    pending: list[tuple[tuple[str | int, ...], Any, Any]] = [((), value, restored)]
    while pending:
        keys, item, after = pending.pop()
        if isinstance(item, dict | list):
            entries = item.items() if isinstance(item, dict) else enumerate(item)
            pending.extend(((*keys, key), inner, after[key]) for key, inner in entries)
        elif item == REDACTED and after != REDACTED:
            found.append(keys)
    return found


def mask_like_before(value: JsonValue, before: JsonValue, names: frozenset[str], seal: Callable[[str], str]) -> Any:
    """Return a copy of the value with these names encrypted; a `***` keeps the encrypted value of `before`."""
    if isinstance(value, dict):
        old = before if isinstance(before, dict) else {}
        return {
            key: _restore_or_encrypt(item, old.get(key), seal)
            if key in names and item is not None
            else mask_like_before(item, old.get(key), names, seal)
            for key, item in value.items()
        }
    if isinstance(value, list):
        old_items = before if isinstance(before, list) else []
        return [mask_like_before(item, old, names, seal) for item, old in zip_longest(value, old_items[: len(value)])]
    return value


def _restore_or_encrypt(value: JsonValue, before: JsonValue, seal: Callable[[str], str]) -> str:
    if value == REDACTED and isinstance(before, str) and before.startswith(MARK):
        return before
    return MARK + seal(json.dumps(value, default=str))


def mask_step_state(step_state: Mapping[str, Any], names: frozenset[str], seal: Callable[[str], str]) -> dict[str, Any]:
    """Return a task's step state with its data encrypted: inputs set by an operator, and the inputs in its branch."""
    if not names:
        return dict(step_state)
    data = {name: mask_encrypt(step_state[name], names, seal) for name in DATA if name in step_state}
    return {
        **step_state,
        **data,
        **({DOCUMENT: _mask_step_inputs(step_state[DOCUMENT], names, seal)} if DOCUMENT in step_state else {}),
    }


def _mask_step_inputs(document: Any, names: frozenset[str], seal: Callable[[str], str]) -> Any:
    """Return a step's document in which the inputs of all steps are encrypted."""
    copied = document.copy()
    pending = [copied]
    while pending:
        container = pending.pop()
        for key, item in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if key == "inputParameters":
                container[key] = mask_encrypt(item, names, seal)
            elif isinstance(item, dict | list):
                container[key] = inner = item.copy()
                pending.append(inner)
    return copied


def masked_paths(value: JsonValue) -> list[tuple[str | int, ...]]:
    found: list[tuple[str | int, ...]] = []
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while pending:
        keys, item = pending.pop()
        if isinstance(item, dict | list):
            entries = item.items() if isinstance(item, dict) else enumerate(item)
            pending.extend(((*keys, key), inner) for key, inner in entries)
        elif isinstance(item, str) and item.startswith(MARK):
            found.append(keys)
    return found


def redact_text(text: str) -> str:
    """Return JSON text, possibly truncated, with encrypted values replaced by `***`."""
    return SEALED_TEXT.sub(f'"{REDACTED}"', text) if MARK in text else text


def redact_for_listeners(value: JsonValue, definition: Definition) -> Any:
    """Return a copy of the value for listeners: values that the definition masks are replaced by `***`."""
    names = masked_names(definition)
    return redact_masked(mask_encrypt(value, names, lambda text: "")) if names else value


def mask_decrypt(value: JsonValue, open_: Callable[[str], str]) -> Any:
    """Return a copy of the value with encrypted values decrypted, or `***` where `open_` raises ValueError."""
    return replace_texts(value, lambda text: _decrypt_text(text, open_), holding=MARK)


def _decrypt_text(text: str, open_: Callable[[str], str]) -> Any:
    if not text.startswith(MARK):
        return text
    try:
        return json.loads(open_(text.removeprefix(MARK)))
    except ValueError:
        return REDACTED


def redact_masked(value: JsonValue) -> Any:
    """Return a copy of the value with encrypted values replaced by `***`."""
    return replace_texts(value, lambda text: REDACTED if text.startswith(MARK) else text, holding=MARK)
