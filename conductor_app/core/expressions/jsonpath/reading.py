"""One evaluation of a path: the document behind `$`, and the remaining budget."""

from collections.abc import Callable
from typing import Any

from ..patterns import MatchTimeBudget
from .jsonpath_errors import BadPath

# Without a limit, `..*..*..*` over a deep document would visit an enormous number of values.
MAX_VISITS = 1_000_000


class Absent:
    """The result of a path without a value. Null is a value."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = Absent()


class NoAnswer(Exception):
    """A function has no answer, which ends the whole reading without a value."""


class Reading:
    """State that the parts of a path share while they read one document."""

    __slots__ = ("_absolute", "_seen", "_visits", "budget")

    def __init__(self, absolute: Callable[[Any, "Reading"], Any]) -> None:
        self._absolute = absolute
        self._seen: dict[Any, Any] = {}
        self._visits = MAX_VISITS
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
