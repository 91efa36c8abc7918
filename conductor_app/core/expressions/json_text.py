"""Traversal of JSON values without recursion, for any depth."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_PLAIN_NAME = re.compile(r"[^\s.\[\]'\"]+")


def replace_texts(value: Any, replace: Callable[[str], Any], holding: str = "${") -> Any:
    """Return a copy of the value with every text that contains `${` replaced. Map keys and other values stay."""
    if isinstance(value, str):
        return replace(value) if holding in value else value
    if not isinstance(value, dict | list):
        return value
    copied = value.copy()
    pending = [copied]
    while pending:
        container = pending.pop()
        for key, item in _container_items(container):
            if isinstance(item, str):
                if holding in item:
                    container[key] = replace(item)
            elif isinstance(item, dict | list):
                container[key] = inner = item.copy()
                pending.append(inner)
    return copied


def json_length(value: Any, most: int) -> int:
    """Return about how many characters a value has as JSON. Counting stops after `most`."""
    length, pending = 0, [value]
    while pending and length <= most:
        item = pending.pop()
        if isinstance(item, str):
            length += len(item) + 3
        elif isinstance(item, dict):
            length += 2 + 4 * len(item) + sum(map(len, item))
            pending.extend(item.values())
        elif isinstance(item, list):
            length += 2
            pending.extend(item)
        else:
            length += 4
    return length


def expression_texts(value: Any) -> Iterator[str]:
    """Yield every text in the value that contains `${`, in unspecified order."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if "${" in item:
                yield item
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def expression_texts_by_path(value: Any) -> Iterator[tuple[str, str]]:
    """Yield every text that contains `${` with its path, such as `order.lines[0].sku`, in document order."""
    pending: list[tuple[Any, Any]] = [(None, value)]
    while pending:
        place, item = pending.pop()
        if isinstance(item, str):
            if "${" in item:
                yield _path_text(place), item
        elif isinstance(item, dict | list):
            pending.extend(reversed([((place, key), inner) for key, inner in _container_items(item)]))


def expression_texts_with_results(template: Any, resolved: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the path of every text that contains `${`, the text, and what the resolved template has in its place.

    Texts without a place in the resolved template are left out.
    """
    pending: list[tuple[Any, Any, Any]] = [(None, template, resolved)]
    while pending:
        place, item, result = pending.pop()
        if isinstance(item, str):
            if "${" in item:
                yield _path_text(place), item, result
        elif isinstance(item, dict) and isinstance(result, dict):
            pending.extend(((place, key), inner, result[key]) for key, inner in item.items() if key in result)
        elif isinstance(item, list) and isinstance(result, list):
            pending.extend(((place, at), inner, result[at]) for at, inner in enumerate(item) if at < len(result))


def _container_items(container: Any) -> Iterable[tuple[Any, Any]]:
    return container.items() if isinstance(container, dict) else enumerate(container)


def _path_text(place: Any) -> str:
    """Return the path as text. The path is a chain of keys until its text is requested, which is rare."""
    keys = []
    while place is not None:
        place, key = place
        keys.append(key)
    return "".join(map(_key_text, reversed(keys))).removeprefix(".")


def _key_text(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _PLAIN_NAME.fullmatch(key) else f"[{key!r}]"
