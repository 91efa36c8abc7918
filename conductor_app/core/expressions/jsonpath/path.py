"""A compiled path: segments that each map the current values to the next ones."""

from collections.abc import Callable, Iterable
from typing import Any

from ..patterns import PatternTooSlow
from .jsonpath_errors import BadPath
from .reading import ABSENT, NoAnswer, Reading
from .segments import Index, Property


class Path:
    """A JSONPath, compiled once and read from many documents."""

    __slots__ = ("_ends", "_steps", "absolutes", "is_definite", "segments", "text")

    def __init__(
        self, text: str, segments: tuple[Any, ...], ends: tuple[int, ...] = (), absolutes: tuple[Any, ...] = ()
    ):
        self.text = text
        self.segments = segments
        self.absolutes = absolutes
        self.is_definite = all(segment.is_definite for segment in segments)
        self._ends = ends
        self._steps = _plain_steps(segments)

    def __repr__(self) -> str:
        return f"Path({self.text!r})"

    @property
    def nothing(self) -> Any:
        """Return the result of the path if it finds no value."""
        return None if self.is_definite else []

    @property
    def head(self) -> "Path":
        """Return the definite beginning of the path."""
        certain = next((n for n, segment in enumerate(self.segments) if not segment.is_definite), len(self.segments))
        return Path(self.text, self.segments[:certain])

    def tail(self, count: int) -> "Path":
        """Return the path without its first `count` segments."""
        cut = self._ends[count - 1] if count else 0
        if self.text.startswith(".", cut) and not self.text.startswith("..", cut):
            cut += 1
        ends = tuple(end - cut for end in self._ends[count:])
        return Path(self.text[cut:], self.segments[count:], ends, self.absolutes)

    def read(self, document: Any, absolute: Callable[["Path", Reading], Any] | None = None) -> Any:
        """Return the value at this path. Without a result, return None, or [] for an indefinite path.

        `absolute(path, reading)` resolves the paths inside that begin with `$`; by default they refer to the same
        document.
        """
        found = self.find(document, absolute)
        return self.nothing if found is ABSENT else found

    def find(self, document: Any, absolute: Callable[["Path", Reading], Any] | None = None) -> Any:
        """Return the value at this path, or ABSENT.

        Raises:
            BadPath: when reading exceeds a limit.
        """
        if self._steps is not None:
            return _walk_plain_steps(self._steps, document)
        reading = Reading(absolute or (lambda path, within: path.find_within(document, within)))
        try:
            return self.find_within(document, reading)
        except PatternTooSlow as problem:
            raise BadPath(str(problem)) from None
        except NoAnswer:
            return ABSENT

    def find_within(self, item: Any, reading: Reading) -> Any:
        """Return the value at this path as part of an outer reading, or ABSENT."""
        if self._steps is not None:
            return _walk_plain_steps(self._steps, item)
        hits = [item]
        for segment in self.segments:
            reading.visit(len(hits) + 1)
            hits = segment.step(hits, reading)
        if not self.is_definite:
            return hits
        return hits[-1] if hits else ABSENT


def _plain_steps(segments: Iterable[Any]) -> tuple[str | int, ...] | None:
    """Return the names and positions of a path that has only these, otherwise None."""
    if all(type(segment) in (Property, Index) and segment.is_definite and segment.is_single for segment in segments):
        return tuple(segment.step_into for segment in segments)
    return None


def _walk_plain_steps(steps: Iterable[Any], value: Any) -> Any:
    for step in steps:
        if type(step) is str:
            if not isinstance(value, dict) or step not in value:
                return ABSENT
        elif not isinstance(value, list) or not -len(value) <= step < len(value):
            return ABSENT
        value = value[step]
    return value
