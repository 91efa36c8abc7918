"""The segments of a path. Each takes the values found so far and gives the next ones, in the order of the document."""

from dataclasses import dataclass
from typing import Any, ClassVar

from .reading import Reading


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
        """Return True if a descent stops at this value."""
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
        """Return True if a descent stops at this value."""
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
        """Return True if a descent stops at this value."""
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
        """Return True if a descent stops at this value."""
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
        """Return True if a descent stops at this value."""
        return self.condition.holds(value, reading)
