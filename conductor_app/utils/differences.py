"""Differences between JSON values, by path, and between texts, line by line."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice, pairwise
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
            one, other = (side[index] if index < len(side) else MISSING for side in (before, after))
            yield from _find_differences(one, other, f"{path}[{index}]", depth + 1)
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        # In JSON, `true` is not equal to 1.
        yield Difference(path, before, after)


SAME, GONE, NEW = "same", "gone", "new"
AROUND = 3
MAX_COMPARED = 10_000
"""The product of two numbers of lines up to which all of them are compared with one another."""
MAX_LINES = 4_000
"""The maximum number of lines of a diff. A line with three dots stands for the others."""

Match = tuple[int, int, int]
"""Equal lines: the index of the first one in the old and in the new text, and their number."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line with its line numbers in the old and the new text."""

    kind: str
    old: int | None
    new: int | None
    text: str


def diff_hunks(old: str, new: str) -> list[list[DiffLine]]:
    """Return the differing parts of two texts, each with its context."""
    before, after = old.splitlines(), new.splitlines()
    matcher: Any = SequenceMatcher(None, "", "", autojunk=False)
    # Its own comparison takes cubic time for texts with many equal lines, as JSON has.
    matcher.opcodes = list(_opcodes(_matches(before, after, 0, len(before), 0, len(after)), len(before), len(after)))
    hunks: list[list[DiffLine]] = []
    room = MAX_LINES
    for group in matcher.get_grouped_opcodes(AROUND):
        lines = [line for code in group for line in _lines(before, after, *code)]
        hunks.append(lines if len(lines) <= room else [*lines[:room], DiffLine(SAME, None, None, "…")])
        room -= len(lines)
        if room < 0:
            break
    return hunks


def _matches(before: Sequence[str], after: Sequence[str], a: int, b: int, c: int, d: int) -> Iterator[Match]:
    """Yield the equal parts of `before[a:b]` and `after[c:d]`.

    Lines at both ends are compared first, and small parts completely. A large part is split at the lines that occur
    once in both texts, such as the reference of a step; without one, it is different.
    """
    start = a
    while a < b and c < d and before[a] == after[c]:
        a, c = a + 1, c + 1
    if a > start:
        yield start, c - (a - start), a - start
    end = b
    while a < b and c < d and before[b - 1] == after[d - 1]:
        b, d = b - 1, d - 1
    if (b - a) * (d - c) <= MAX_COMPARED:
        for i, j, size in SequenceMatcher(None, before[a:b], after[c:d], autojunk=False).get_matching_blocks():
            if size:
                yield a + i, c + j, size
    else:
        for i, j, next_i, next_j in _parts(_anchors(before, after, a, b, c, d), a, b, c, d):
            yield from _matches(before, after, i, next_i, j, next_j)
    if end > b:
        yield b, d, end - b


def _parts(anchors: list[tuple[int, int]], a: int, b: int, c: int, d: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the parts between anchors, each of which begins with its anchor."""
    if not anchors:
        return
    places = [(a, c), *anchors, (b, d)]
    for (i, j), (next_i, next_j) in pairwise(places):
        yield i, j, next_i, next_j


def _anchors(before: Sequence[str], after: Sequence[str], a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
    """Return the indexes of lines that occur once in both parts and are in the same order."""
    old_counts, new_counts = Counter(before[a:b]), Counter(after[c:d])
    new_places = {after[j]: j for j in range(c, d) if new_counts[after[j]] == 1}
    pairs = [(i, new_places[before[i]]) for i in range(a, b) if old_counts[before[i]] == 1 and before[i] in new_places]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    ends: list[int] = []
    places: list[int] = []
    previous: list[int] = []
    for place, (_, number) in enumerate(pairs):
        at = bisect_left(ends, number)
        previous.append(places[at - 1] if at else -1)
        ends[at : at + 1] = [number]
        places[at : at + 1] = [place]
    found, place = [], places[-1] if places else -1
    while place >= 0:
        found.append(pairs[place])
        place = previous[place]
    return found[::-1]


def _opcodes(matches: Iterator[Match], old_length: int, new_length: int) -> Iterator[tuple[str, int, int, int, int]]:
    i = j = 0
    equal: tuple[str, int, int, int, int] | None = None
    for a, c, size in matches:
        if equal and (a, c) == (i, j):
            equal = ("equal", equal[1], i + size, equal[3], j + size)
        else:
            if equal:
                yield equal
            if a > i or c > j:
                yield ("replace" if a > i and c > j else "delete" if a > i else "insert"), i, a, j, c
            equal = ("equal", a, a + size, c, c + size)
        i, j = a + size, c + size
    if equal:
        yield equal
    if old_length > i or new_length > j:
        tag = "replace" if old_length > i and new_length > j else "delete" if old_length > i else "insert"
        yield tag, i, old_length, j, new_length


def _lines(before: list[str], after: list[str], tag: str, a: int, b: int, c: int, d: int) -> list[DiffLine]:
    if tag == "equal":
        return [DiffLine(SAME, a + n + 1, c + n + 1, text) for n, text in enumerate(before[a:b])]
    gone = [DiffLine(GONE, a + n + 1, None, text) for n, text in enumerate(before[a:b])]
    return gone + [DiffLine(NEW, None, c + n + 1, text) for n, text in enumerate(after[c:d])]
