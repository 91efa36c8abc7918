"""A compiled path: segments that each map the values found so far to the next ones, in the order of the document."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from .patterns import MatchTimeBudget, PatternTooSlow


class BadPath(ValueError):
    """The text is not a path, or exceeds a limit of paths."""


# Without a limit, `..*..*..*` over a deep document would visit an enormous number of values.
MAX_VISITS = 1_000_000
MAX_SHARED_VISITS = 1_500_000
"""The maximum number of values that all paths of one decision visit, which takes a few seconds."""


class VisitCounter:
    """Counts the values that the paths of one decision have visited."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


_shared: ContextVar[VisitCounter | None] = ContextVar("visits", default=None)


@contextmanager
def count_visits() -> Iterator[VisitCounter]:
    """Limit all readings of the block together to `MAX_SHARED_VISITS`. Paths of names and positions alone are free."""
    counter = VisitCounter()
    token = _shared.set(counter)
    try:
        yield counter
    finally:
        _shared.reset(token)


class Absent:
    """The result of a path without a value. Null is a value."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = Absent()


class NoAnswer(Exception):
    """A function has no answer, which ends the whole reading without a value."""


class Reading:
    """State that the parts of a path share while they read one document."""

    __slots__ = ("_absolute", "_seen", "_shared", "_visits", "budget")

    def __init__(self, absolute: Callable[[Any, "Reading"], Any]) -> None:
        self._absolute = absolute
        self._seen: dict[Any, Any] = {}
        self._visits = MAX_VISITS
        self._shared = _shared.get() or VisitCounter()
        self.budget = MatchTimeBudget()

    def absolute(self, path: Any) -> Any:
        """Return the result of a path that begins with `$`. It is cached because a filter needs it for every value."""
        if path not in self._seen:
            self._seen[path] = self._absolute(path, self)
        return self._seen[path]

    def visit(self, count: int = 1) -> None:
        """Count visited values.

        Raises:
            BadPath: when there are too many.
        """
        self._visits -= count
        if self._visits < 0:
            raise BadPath(f"the path visits more than {MAX_VISITS:,} values")
        self._shared.count += count
        if self._shared.count > MAX_SHARED_VISITS:
            raise BadPath(f"the paths of a decision visit more than {MAX_SHARED_VISITS:,} values")


MAX_DEPTH = 24

_BLANKS = re.compile(r"\s*")
_STRING = {quote: re.compile(rf"{quote}((?:[^{quote}\\]|\\.)*){quote}", re.DOTALL) for quote in "'\""}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Cursor:
    """Reads a path from left to right, and remembers the paths from `$` that it came by."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.absolutes: list[Any] = []
        self._depth = 0

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self.text)

    def is_at(self, *marks: str) -> bool:
        """Return True if one of these marks comes next."""
        return self.text.startswith(marks, self.at)

    def skip_blanks(self) -> "Cursor":
        self.match(_BLANKS)
        return self

    def accept(self, mark: str) -> bool:
        """Skip the mark if it comes next. Returns True if it did."""
        if not self.is_at(mark):
            return False
        self.at += len(mark)
        return True

    def expect(self, mark: str) -> None:
        """Skip white space and the mark."""
        if not self.skip_blanks().accept(mark):
            self.refuse(f"expected '{mark}'")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read the text that matches the pattern at this position, or None."""
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def string(self) -> str:
        """Read a text in single or double quotes."""
        found = self.match(_STRING[self.text[self.at]])
        return _unescape(found[1]) if found else self.refuse("the quote is not closed")

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Enter a nesting level.

        Raises:
            BadPath: when there are too many.
        """
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.refuse(f"more than {MAX_DEPTH} levels of brackets")
        yield
        self._depth -= 1

    def refuse(self, problem: str) -> NoReturn:
        """Report an error at this position."""
        here = f"at position {self.at}" if not self.is_at_end else "at the end"
        shown = self.text if len(self.text) <= 200 else self.text[:200] + "…"
        raise BadPath(f"{problem} {here} of {shown!r}")


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2]), text)


@dataclass(frozen=True)
class Property:
    """`.name`, `['name']` or `['a','b']`: the last merges the named members when it ends the path."""

    names: tuple[str, ...]
    is_last: bool = True

    @property
    def is_single(self) -> bool:
        return len(self.names) == 1

    @property
    def is_definite(self) -> bool:
        return self.is_single or self.is_last

    @property
    def step_into(self) -> str:
        return self.names[0]

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return the named members of every map."""
        maps = [hit for hit in hits if isinstance(hit, dict)]
        if self.is_definite and not self.is_single:
            return [{name: found[name] for name in self.names if name in found} for found in maps]
        reading.visit(len(maps) * len(self.names))
        return [found[name] for found in maps for name in self.names if name in found]

    def is_in(self, value: Any, reading: Reading) -> bool:
        return isinstance(value, dict) and (not self.is_definite or all(name in value for name in self.names))


@dataclass(frozen=True)
class Index:
    """`[n]` or `[n,m]`; negative positions count from the end."""

    positions: tuple[int, ...]

    @property
    def is_single(self) -> bool:
        return len(self.positions) == 1

    @property
    def is_definite(self) -> bool:
        return self.is_single

    @property
    def step_into(self) -> int:
        return self.positions[0]

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return the elements at these positions of every list."""
        reading.visit(len(hits) * len(self.positions))
        lists = [hit for hit in hits if isinstance(hit, list)]
        return [found[n] for found in lists for n in self.positions if -len(found) <= n < len(found)]

    def is_in(self, value: Any, reading: Reading) -> bool:
        return isinstance(value, list)


@dataclass(frozen=True)
class Slice:
    """`[f:t]`, `[f:]` or `[:t]`."""

    start: int | None
    stop: int | None
    is_definite: ClassVar[bool] = False

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return the elements in this range of every list."""
        found: list[Any] = []
        for hit in hits:
            if isinstance(hit, list):
                positions = self._positions(len(hit))
                reading.visit(len(positions))
                found.extend(hit[n] for n in positions)
        return found

    def is_in(self, value: Any, reading: Reading) -> bool:
        return isinstance(value, list)

    def _positions(self, length: int) -> range:
        if self.start is None or self.stop is None:
            return range(length)[self.start : self.stop]
        # With both ends, Jayway counts each position from the end by itself: `[-2:9]` goes round.
        return range(max(self.start, -length), min(length, self.stop))


@dataclass(frozen=True)
class Wildcard:
    """`*`: every member or element."""

    is_definite: ClassVar[bool] = False

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return all members of the maps and all elements of the lists."""
        found: list[Any] = []
        for hit in hits:
            if isinstance(hit, dict | list):
                reading.visit(len(hit))
                found.extend(hit.values() if isinstance(hit, dict) else hit)
        return found

    def is_in(self, value: Any, reading: Reading) -> bool:
        return True


@dataclass(frozen=True)
class Filter:
    """`[?(…)]`: the elements of a list that pass, or the map itself."""

    condition: Any
    is_definite: ClassVar[bool] = False

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return the values that meet the condition."""
        candidates: list[Any] = []
        for hit in hits:
            if isinstance(hit, dict):
                candidates.append(hit)
            elif isinstance(hit, list):
                reading.visit(len(hit))
                candidates.extend(hit)
        return [candidate for candidate in candidates if self.condition.holds(candidate, reading)]

    def is_in(self, value: Any, reading: Reading) -> bool:
        return self.condition.holds(value, reading)


@dataclass(frozen=True)
class Descent:
    """`..x`: the segment after the dots, tried at the value itself and at everything below it."""

    segment: Any
    is_last: bool = True
    is_definite: ClassVar[bool] = False

    def step(self, hits: list[Any], reading: Reading) -> list[Any]:
        """Return the results of the segment at every depth, parents before children."""
        found: list[Any] = []
        pending = list(reversed(hits))
        while pending:
            value = pending.pop()
            if isinstance(value, dict | list):
                reading.visit()
                if self._stops_at(value, reading):
                    found.extend(self._found_at(value, reading))
                pending.extend(reversed(value.values() if isinstance(value, dict) else value))
        return found

    def _stops_at(self, value: Any, reading: Reading) -> bool:
        # Jayway does not look for functions at every depth: `..length()` finds nothing.
        is_in = getattr(self.segment, "is_in", None)
        return is_in is not None and is_in(value, reading)

    def _found_at(self, value: Any, reading: Reading) -> list[Any]:
        # In the middle of a path, Jayway continues with every element of a list, whatever the segment selects.
        if isinstance(value, list) and not self.is_last:
            reading.visit(len(value))
            return value
        return self.segment.step([value], reading)


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
        """Return the value at this path, or ABSENT."""
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
