"""Regular expressions of users: re2 with linear time, and a backtracking engine with a time limit for others."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from math import prod
from time import monotonic

import re2
import regex

MAX_PATTERN_LENGTH = 1_000
SECONDS_TO_BACKTRACK = 0.2
SHARED_SECONDS = 0.5
"""The time of the backtracking engine in one reading, and in all readings of a decision and the runs that it starts."""
# The backtracking engine writes `((a{100}){100}){100}` out: a million nodes, and no timeout while it compiles.
MAX_REPETITIONS = 10_000

_REPETITION = re.compile(r"\{\s*(\d+)")
_QUIET = re2.Options()
_QUIET.log_errors = False


class BadPattern(ValueError):
    """The text is not a regular expression that we can run."""


class PatternTooSlow(TimeoutError):
    """The expression needed more time than a user's expression gets."""


class MatchTimeBudget:
    """The seconds that one reading may still spend in the backtracking engine, however many values it tests.

    The block of `share_match_time` around it, if there is one, limits all of its readings together.
    """

    __slots__ = ("_own", "_shared")

    def __init__(self, seconds: float = SECONDS_TO_BACKTRACK):
        self._own, self._shared = seconds, _shared.get()

    @property
    def seconds(self) -> float:
        return self._own if self._shared is None else min(self._own, self._shared.seconds)

    def spend(self, seconds: float) -> None:
        """Subtract the time of a match."""
        self._own -= seconds
        if self._shared is not None:
            self._shared.spend(seconds)


_shared: ContextVar[MatchTimeBudget | None] = ContextVar("match_time", default=None)


@contextmanager
def share_match_time() -> Iterator[None]:
    """Limit all readings of the block together to `SHARED_SECONDS`, unless a block around it does."""
    if _shared.get() is not None:
        yield
        return
    token = _shared.set(MatchTimeBudget(SHARED_SECONDS))
    try:
        yield
    finally:
        _shared.reset(token)


class LinearPattern:
    """A pattern that re2 supports. Its time depends only on the length of the text."""

    def __init__(self, source: str):
        self._compiled = re2.compile(source, _QUIET)

    def matches(self, text: str, budget: MatchTimeBudget) -> bool:
        return self._compiled.fullmatch(_encodable(text)) is not None


class BacktrackingPattern:
    """A pattern with look-around or back references, with a time limit."""

    def __init__(self, source: str):
        self._compiled = regex.compile(source, regex.ASCII)

    def matches(self, text: str, budget: MatchTimeBudget) -> bool:
        """Return True if the complete text matches.

        Raises:
            PatternTooSlow: when the time limit is exceeded.
        """
        if budget.seconds <= 0:
            raise PatternTooSlow("the regular expression is too slow")
        begun_at = monotonic()
        try:
            return self._compiled.fullmatch(text, timeout=budget.seconds) is not None
        except TimeoutError:
            raise PatternTooSlow("the regular expression is too slow") from None
        finally:
            budget.spend(monotonic() - begun_at)


@lru_cache(maxsize=250)
def compile_pattern(source: str, flags: str = "") -> LinearPattern | BacktrackingPattern:
    """Return the compiled pattern. `flags`: Java's letters, of which i, m, s and x have an effect.

    Raises:
        BadPattern: when it is invalid or too long.
    """
    if len(source) > MAX_PATTERN_LENGTH:
        raise BadPattern(f"a regular expression may have {MAX_PATTERN_LENGTH} characters at most")
    known = "".join(letter for letter in "imsx" if letter in flags)
    written = f"(?{known}){source}" if known else source
    try:
        return LinearPattern(written)
    except (re2.error, UnicodeEncodeError):
        return _backtracking(written)


def full_match(source: str, text: str, flags: str = "") -> bool:
    return compile_pattern(source, flags).matches(text, MatchTimeBudget())


def _backtracking(source: str) -> BacktrackingPattern:
    if prod(max(int(count), 1) for count in _REPETITION.findall(source)) > MAX_REPETITIONS:
        raise BadPattern("the regular expression repeats too often")
    try:
        return BacktrackingPattern(source)
    except (regex.error, ValueError, OverflowError, RecursionError) as problem:
        raise BadPattern(f"not a regular expression: {problem}") from None


def _encodable(text: str) -> str:
    """Return the text with lone surrogates replaced, because JSON may contain them and re2 cannot read them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
