"""One reading of a path: the document behind `$`, and how much work is left."""

from typing import Any

from ..patterns import MatchTimeBudget
from .jsonpath_errors import BadPath

# `..*..*..*` over a deep document would otherwise visit more values than there are seconds.
MOST_VISITS = 1_000_000


class Absent:
    """What a path finds where nothing is; null is something."""

    def __repr__(self):
        return "ABSENT"


ABSENT: Any = Absent()


class NoAnswer(Exception):
    """A function has no answer, which ends the whole reading without a value."""


class Reading:
    """What the parts of a path share while they read one document."""

    __slots__ = ("_absolute", "_seen", "_visits", "budget")

    def __init__(self, absolute):
        self._absolute = absolute
        self._seen: dict[Any, Any] = {}
        self._visits = MOST_VISITS
        self.budget = MatchTimeBudget()

    def absolute(self, path):
        """What a path that begins with `$` finds; a filter asks again for every value, so the answer is kept."""
        if path not in self._seen:
            self._seen[path] = self._absolute(path, self)
        return self._seen[path]

    def visit(self, count: int = 1) -> None:
        """Pay for looking at so many values."""
        self._visits -= count
        if self._visits < 0:
            raise BadPath(f"the path visits more than {MOST_VISITS:,} values")
