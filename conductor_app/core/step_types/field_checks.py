"""Checks of single fields that several step types share."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def is_expression(value: Any) -> bool:
    """Return True if only a run knows the value."""
    return isinstance(value, str) and "${" in value


def is_whole_number(value: Any, least: int) -> bool:
    """Return True if the value is a whole number of at least `least`, is missing, or is an expression."""
    if value in (None, "") or is_expression(value):
        return True
    text = str(value)
    return not isinstance(value, bool) and text.isascii() and text.isdigit() and int(text[:18]) >= least


def whole_number(value: Any) -> int | None:
    """Return the value as a whole number, without its fraction; None if it is not a number. A Boolean is none."""
    try:
        return None if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def unknown_word_message(given: str, known: Iterable[str]) -> str:
    """Return the message for an unknown word, with a similar known one."""
    similar = get_close_matches(given, sorted(known), 1)
    hint = f"Did you mean {similar[0]}?" if similar else f"Use one of {', '.join(sorted(known)[:20])}."
    return f"{given[:100]!r} is not known. {hint}"
