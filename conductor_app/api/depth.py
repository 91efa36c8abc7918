"""How deep a value is nested: what comes from outside is bounded before anybody walks through it."""

from typing import Any


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
