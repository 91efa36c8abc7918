"""Line-by-line diff of two texts, with context."""

from dataclasses import dataclass
from difflib import SequenceMatcher

SAME, GONE, NEW = "same", "gone", "new"
AROUND = 3


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
    groups = SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(AROUND)
    return [[line for code in group for line in _lines(before, after, *code)] for group in groups]


def _lines(before: list[str], after: list[str], tag: str, a: int, b: int, c: int, d: int) -> list[DiffLine]:
    if tag == "equal":
        return [DiffLine(SAME, a + n + 1, c + n + 1, text) for n, text in enumerate(before[a:b])]
    gone = [DiffLine(GONE, a + n + 1, None, text) for n, text in enumerate(before[a:b])]
    return gone + [DiffLine(NEW, None, c + n + 1, text) for n, text in enumerate(after[c:d])]
