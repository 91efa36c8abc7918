"""Traversal of JSON values without recursion, for any depth, and JSON values and scripts as text."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from json import JSONEncoder, encoder
from typing import Any

_PLAIN_NAME = re.compile(r"[^\s.\[\]'\"]+")


def replace_texts(
    value: Any, replace: Callable[[str], Any], holding: str = "${", *, replaces_keys: bool = False
) -> Any:
    """Return a copy of the value with every text that contains `${` replaced. Other values, and most map keys, stay."""
    if isinstance(value, str):
        return replace(value) if holding in value else value
    if not isinstance(value, dict | list):
        return value
    copied = value.copy()
    pending = [copied]
    while pending:
        container = pending.pop()
        if replaces_keys and isinstance(container, dict) and any(holding in key for key in container):
            renamed = {replace(key) if holding in key else key: item for key, item in container.items()}
            container.clear()
            container.update(renamed)
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


_ESCAPED = encoder.encode_basestring
_ENCODER = JSONEncoder(ensure_ascii=False)


def java_text(value: Any) -> str:
    """Return the value as Java's `toString` prints it: `null`, `true`, `1.0`, `{a=1, b=x}`, `[1, 2]`."""
    return value if type(value) is str else _print(value, "=", ", ", str)


def json_text(value: Any) -> str:
    """Return the value as compact JSON with numbers in Java's format."""
    return _print(value, ":", ",", _ESCAPED)


def field_text(value: Any) -> str:
    """Return the text of a field to which a value of any type is given: nothing for null, and JSON for non-texts."""
    return value if type(value) is str else "" if value is None else json_text(value)


def quote_value(value: Any, limit: int = 100) -> str:
    """Return the first characters of a value as JSON, for a message about it."""
    return "".join(islice(_ENCODER.iterencode(value), limit))[:limit]


def _java_number(value: int | float) -> str:
    """Return a number in Java's format: doubles always with a point, and `1.0E7` from ten million."""
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value) if value == 0 or 1e-3 <= abs(value) < 1e7 else _scientific(value)


def _scientific(value: float) -> str:
    digits, exponent = f"{value!r}e0".lower().split("e")[:2]
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    significant = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent) - (len(whole + fraction) - len(significant))
    significant = significant.rstrip("0") or "0"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{point - 1}"


def _print(value: Any, colon: str, comma: str, text: Callable[[str], str]) -> str:
    """Return the printed value. Printing is not recursive, so deep documents are only long texts."""
    pieces: list[str] = []
    # The stack of values to print, with the punctuation between them wrapped in tuples.
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if type(item) is tuple:
            pieces.append(item[0])
        elif isinstance(item, dict):
            pending.append(("}",))
            pending.extend(reversed(_members(item, colon, comma, text)))
            pieces.append("{")
        elif isinstance(item, list):
            pending.append(("]",))
            pending.extend(reversed(_elements(item, comma)))
            pieces.append("[")
        else:
            pieces.append(_scalar(item, text))
    return "".join(pieces)


def _members(mapping: Mapping[str, Any], colon: str, comma: str, text: Callable[[str], str]) -> list[Any]:
    printed: list[Any] = []
    for key, value in mapping.items():
        lead = comma if printed else ""
        printed += [(f"{lead}{text(str(key))}{colon}",), value]
    return printed


def _elements(values: Sequence[Any], comma: str) -> list[Any]:
    printed: list[Any] = []
    for value in values:
        if printed:
            printed.append((comma,))
        printed.append(value)
    return printed


def _scalar(value: Any, text: Callable[[str], str]) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    return _java_number(value) if isinstance(value, int | float) else text(str(value))


# An unclosed text ends with its line or the script, so that no character is read twice.
TEXT = re.compile(
    r"'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)"
    r"|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?|#[^\n]*",
    re.DOTALL,
)
NAME = re.compile(r"(?<![\w.])[^\W\d]\w*")


def without_texts(script: str) -> str:
    """Return the script with every literal text empty and without comments."""
    return TEXT.sub("''", script)


def script_names(script: str) -> list[str]:
    """Return the names and keywords in the order of their first use, without attributes."""
    return list(dict.fromkeys(NAME.findall(without_texts(script))))
