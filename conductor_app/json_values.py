"""JSON as it comes from outside: all digits of its integers are kept, and its depth is bounded before it is walked."""

import json
import re
from typing import Any

import orjson

MAX_DEPTH = 200
"""How deep JSON may be nested: what is stored is written again inside other documents, up to the writer's own limit."""
LONG_NUMBER = re.compile(rb"\d{19}")
PAIR, HALF = rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..", rb"(\\u[dD][89a-fA-F]..)"
ESCAPED_SURROGATE = re.compile(PAIR + b"|" + HALF + rb"|\\.", re.DOTALL)
"""Whatever a backslash begins, so that one behind another begins nothing; its group is half a character."""


def loads(body: bytes) -> Any:
    """The value; raises ValueError and RecursionError."""
    value = orjson.loads(body)
    # Only the slower reader keeps all digits of a long integer; what the other refuses is refused.
    return json.loads(body) if LONG_NUMBER.search(body) else value


def loads_repaired(body: bytes) -> Any:
    """The value, with a sign for what is half a character; raises ValueError and RecursionError."""
    try:
        return loads(body)
    except ValueError as error:
        if "surrogate" not in str(error):
            raise
        return loads(replace_lone_surrogates(body))


def replace_lone_surrogates(body: bytes) -> bytes:
    """The body with a sign for what is half a character: JavaScript cuts texts so, and no database can hold them."""
    return ESCAPED_SURROGATE.sub(lambda found: b"\\ufffd" if found[1] else found[0], body) if b"\\" in body else body


def is_too_deep(value: Any, body: bytes, limit: int) -> bool:
    """Whether the value of this body is nested deeper: only one with that many openings can be, and is walked."""
    return body.count(b"[") + body.count(b"{") > limit and is_deeper(value, limit)


def is_deeper(value: Any, limit: int) -> bool:
    """Whether the value is nested deeper than this."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > limit:
            return True
        inner = (each for each in level if isinstance(each, dict | list))
        level = [each for one in inner for each in (one.values() if isinstance(one, dict) else one)]
    return False
