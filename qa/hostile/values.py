"""Values that servers have failed on, and changes of valid documents into invalid ones."""

import copy
import json
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

NUMBERS = [
    0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400, 0.5,
    -0.0, 1e308, 5e-324, 1e16,
]  # fmt: skip
TEXTS = [  # The last one has half of a surrogate pair: JSON can write it, no encoding can.
    "", " ", "\0", "a\0b", "\r\nX-Injected: 1", "ä€𝄞", "\u202etxt", "\ufeff", "\uffff", "x" * 300, "x" * 70_000,
    "../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "....//", "/", "//", "\\", "%", "%00", "%ff", "%s%n", "{0}",
    "{}", "${workflow.input}", "${", "${a.b[0].c}", "${workflow.secrets.HOSTILE}", "$.x[?(@.y)]", "#{x}", "{{x}}", "'",
    "\"",
    "' OR 1=1 --", "1; DROP TABLE x", "<script>alert(1)</script>", "javascript:alert(1)", "null", "None", "NaN", "inf",
    "-0", "1e999", "true", "0x10", "٣", "²", "1_000", "9" * 5_000, "(a+)+$", "[", "*", "?", "a OR b", "status IN (",
    "name = 'x' AND (", "2026-02-30T25:61:61Z", "0000-00-00", "9999-12-31T23:59:59.999999999Z", "-5000-01-01T00:00:00Z",
    "* * * * *", "* * * * * *", "0 0 31 2 ?", "P1Y", "Europe/Atlantis", "../../../etc/localtime", "de-DE", "xx",
    "-1", "0", "2147483648", "9223372036854775808", "file:///etc/passwd", "http://127.0.0.1:1/", "http://[::", "ftp://x",
    "conductor:x", "amqp_queue:x", "kafka:", "a:b:c", "a@b", "a/b", "a,b,,c", "a;b", "a=b&c=d", ":", "-", "_", ".",
    "..", "a\ud800",
]  # fmt: skip


def random_text(source: random.Random) -> str:
    """Return a text from the list, or up to 40 characters of any planes of Unicode."""
    if source.random() < 0.8:
        return source.choice(TEXTS)
    planes = [(0, 0x7F), (0xA0, 0xFF), (0x400, 0x4FF), (0x2000, 0x20FF), (0xFFF0, 0xFFFD), (0x1F600, 0x1F6FF)]
    return "".join(chr(source.randint(*source.choice(planes))) for _ in range(source.randint(1, 40)))


def random_value(source: random.Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kind = source.random()
    if kind < 0.35:
        return random_text(source)
    if kind < 0.6:
        return source.choice(NUMBERS)
    if kind < 0.75 or depth > 3:
        return source.choice([None, True, False, [], {}, [[]], {"": {}}, [None], {"a": None}])
    if kind < 0.77:
        return nest(source.choice([50, 150, 250]), source.random() < 0.5)
    if kind < 0.78:
        return [source.choice(NUMBERS)] * source.choice([100, 5_000])
    if kind < 0.9:
        return [random_value(source, depth + 1) for _ in range(source.randint(0, 3))]
    return {random_text(source): random_value(source, depth + 1) for _ in range(source.randint(0, 3))}


def nest(depth: int, is_array: bool) -> Any:
    """Return a value of that depth."""
    value: Any = None
    for _ in range(depth):
        value = [value] if is_array else {"a": value}
    return value


def example_of(schema: Mapping[str, Any], source: random.Random, known: Callable[[str], Any], name: str = "") -> Any:
    """Return a value that fits a JSON schema, mostly. `known` returns a known value of a field, or None."""
    return _example(schema, source, known, name, schema.get("components", {}), 0)


def _example(
    schema: Mapping[str, Any], source: random.Random, known: Callable[[str], Any], name: str,
    components: Mapping[str, Any], depth: int,
) -> Any:  # fmt: skip
    value = known(name) if name else None
    if value is not None and source.random() < 0.7:
        return value
    if depth > 8:
        return None
    if "$ref" in schema:
        schema = components.get(schema["$ref"].rpartition("/")[2], {})
    if "enum" in schema:
        return source.choice(list(schema["enum"]))
    for combined in ("anyOf", "oneOf", "allOf"):
        if schema.get(combined):
            return _example(source.choice(schema[combined]), source, known, name, components, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = source.choice(kind)
    if kind == "object":
        required = schema.get("required", ())
        return {
            field: _example(inner, source, known, field, components, depth + 1)
            for field, inner in schema.get("properties", {}).items()
            if field in required or source.random() < 0.5
        }
    if kind == "array":
        items = schema.get("items", {})
        return [_example(items, source, known, name, components, depth + 1) for _ in range(source.randint(0, 2))]
    if kind in ("integer", "number"):
        return source.randint(int(schema.get("minimum", 0)), int(schema.get("maximum", 100)))
    if kind == "boolean":
        return source.random() < 0.5
    if kind == "null":
        return None
    return _example_text(schema, source)


def _example_text(schema: Mapping[str, Any], source: random.Random) -> str:
    if schema.get("format") == "date-time":
        return (datetime.now(UTC) + timedelta(hours=source.randint(-2, 100))).isoformat()
    return source.choice(["a", "order", "1", "2026-11-24", str(UUID(int=source.getrandbits(128), version=4))])


def mutate(document: Any, source: random.Random) -> Any:
    """Return a document with one to three changes, each at a random place."""
    document = copy.deepcopy(document)
    for _ in range(source.randint(1, 3)):
        places = list(_places(document))
        if not places:
            return random_value(source)
        holder, key = source.choice(places)
        change = source.random()
        if change < 0.6:
            holder[key] = random_value(source)
        elif change < 0.75:
            del holder[key]
        elif change < 0.85:
            holder[key] = [holder[key]] if source.random() < 0.5 else {"value": holder[key]}
        elif change < 0.93 and isinstance(holder, dict):
            holder[random_text(source)] = random_value(source)
        else:
            other, its_key = source.choice(places)
            if other is not holder and its_key in (other if isinstance(other, dict) else range(len(other))):
                holder[key] = copy.deepcopy(other[its_key])
    return document


def _places(value: Any, depth: int = 0) -> Any:
    """Yield every place inside of a document: the container and the key."""
    if depth > 12:
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items)[:50]:
        yield value, key
        yield from _places(inner, depth + 1)


def encode(document: Any, source: random.Random) -> bytes:
    """Return a document as JSON, in one of twelve cases damaged."""
    text = json.dumps(document, ensure_ascii=source.random() < 0.5).encode(errors="surrogatepass")
    if source.random() > 1 / 12:
        return text
    return source.choice(DAMAGES)(text, source)


DAMAGES: list[Callable[[bytes, random.Random], bytes]] = [
    lambda text, source: text[: source.randint(0, len(text))],
    lambda text, source: b"\xef\xbb\xbf" + text,
    lambda text, source: text.decode(errors="replace").encode("utf-16"),
    lambda text, source: text.replace(b'"', b'"\xff', 1),
    lambda text, source: text.replace(b'"', b'"\\ud800', 1),
    lambda text, source: text.replace(b'"', b'"\\u0000', 1),
    lambda text, source: text.replace(b'"', b'"\\', 1),
    lambda text, source: text[:-1] + b', "name": 1, "name": "x"}' if text.endswith(b"}") else text + text,
    lambda text, source: text.replace(b":", b": NaN, ", 1),
    lambda text, source: b"[" * source.choice([199, 1_000, 100_000]),
    lambda text, source: b'{"a":' * source.choice([199, 1_000, 100_000]),
    lambda text, source: b"1" * source.choice([20, 400, 10_000]),
    lambda text, source: b"" if source.random() < 0.5 else b"\0",
    lambda text, source: b"a=b&c=d&csrfmiddlewaretoken=x",
    lambda text, source: b'--x\r\nContent-Disposition: form-data; name="file"; filename="../x"\r\n\r\nx\r\n--x--\r\n',
    lambda text, source: source.randbytes(source.choice([1, 100, 5_000])),
]
"""Ways to damage a JSON text."""
