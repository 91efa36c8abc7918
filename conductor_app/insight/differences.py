"""Differences between two JSON values: the paths, and the value on each side."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

MAX_DIFFERENCES = 200
MAX_DEPTH = 60


class MissingValue:
    """Marker for a path that exists on one side only."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = MissingValue()


@dataclass(frozen=True, slots=True)
class Difference:
    """One path at which two values differ. `before` or `after` is MISSING if the path does not exist on that side."""

    path: str
    before: Any
    after: Any

    @property
    def kind(self) -> str:
        if self.before is MISSING:
            return "added"
        return "removed" if self.after is MISSING else "changed"


def find_differences(before: Any, after: Any) -> list[Difference]:
    """Return the differences of two values, at most MAX_DIFFERENCES."""
    return list(islice(_find_differences(before, after, "", 0), MAX_DIFFERENCES))


def _find_differences(before: Any, after: Any, path: str, depth: int) -> Iterator[Difference]:
    if depth < MAX_DEPTH and isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            place = f"{path}.{key}" if path else str(key)
            yield from _find_differences(before.get(key, MISSING), after.get(key, MISSING), place, depth + 1)
    elif depth < MAX_DEPTH and isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            pair = (side[index] if index < len(side) else MISSING for side in (before, after))
            yield from _find_differences(*pair, f"{path}[{index}]", depth + 1)
    elif not _json_equal(before, after):
        yield Difference(path, before, after)


def _json_equal(before: Any, after: Any) -> bool:
    """Compare as JSON does: `true` is not equal to 1."""
    return before == after and isinstance(before, bool) == isinstance(after, bool)
