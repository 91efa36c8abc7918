"""A position in the text of a path, and the tokens that can be read from there."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from .jsonpath_errors import BadPath

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
        """Skip white space."""
        self.match(_BLANKS)
        return self

    def accept(self, mark: str) -> bool:
        """Skip the mark if it comes next. Returns True if it did."""
        if not self.is_at(mark):
            return False
        self.at += len(mark)
        return True

    def expect(self, mark: str) -> None:
        """Skip white space and the mark.

        Raises:
            BadPath: when the mark is missing.
        """
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
        """Report an error at this position.

        Raises:
            BadPath: always.
        """
        here = f"at position {self.at}" if not self.is_at_end else "at the end"
        shown = self.text if len(self.text) <= 200 else self.text[:200] + "…"
        raise BadPath(f"{problem} {here} of {shown!r}")


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2]), text)
