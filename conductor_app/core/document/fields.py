"""Conversion of JSON values to expected types: numbers from text and text from numbers, and nothing more."""

import math
import re
from collections.abc import Callable
from typing import Any

from ...errors import ValidationError

WHOLE_NUMBER = re.compile(r"\s*[+-]?\d{1,20}\s*")
MAX_SECONDS = 10**12
"""The maximum of durations in seconds, 31,688 years: any of them can be added to a time without exceeding 64 bits."""


class ValueRefused(Exception):
    """The value cannot be converted. The message states the expected value."""


class DocumentPosition:
    """The position in a document, and the validation errors so far."""

    __slots__ = ("depth", "fills", "path", "refused", "validation_errors")

    def __init__(
        self, path: str = "", *, depth: int = 0, fills: bool = True, like: "DocumentPosition | None" = None
    ) -> None:
        """`fills`: defaults are filled in and invalid values omitted; otherwise both stay as they are."""
        self.path, self.depth = path, depth
        self.fills: bool = like.fills if like else fills
        self.validation_errors: list[ValidationError] = like.validation_errors if like else []
        self.refused: set[str] = like.refused if like else set()

    def at(self, step: str) -> "DocumentPosition":
        """Return the position of a member or an element."""
        dot = "." if self.path and not step.startswith("[") else ""
        return DocumentPosition(f"{self.path}{dot}{step}", depth=self.depth, like=self)

    def nested(self) -> "DocumentPosition":
        """Return the same position, one level of nested steps deeper."""
        return DocumentPosition(self.path, depth=self.depth + 1, like=self)

    def add_error(self, message: str, value: Any = None) -> None:
        self.validation_errors.append(ValidationError(self.path, message, value))

    def add_missing(self, message: str, value: Any = None) -> None:
        """Report a missing value, unless the existing one was reported already."""
        if self.path not in self.refused:
            self.add_error(message, value)


Reader = Callable[[Any, DocumentPosition], Any]
"""Gives the value as its type; raises Refused, or complains of its parts and leaves them out."""


def read_text(value: Any, place: DocumentPosition) -> str:
    if isinstance(value, str):
        # PostgreSQL keeps no NUL in text.
        return value.replace("\0", "") if "\0" in value else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueRefused("must be text")


def read_name(value: Any, place: DocumentPosition, most: int = 255) -> str:
    """Return a name.

    Raises:
        ValueRefused: when it is longer than its column.
    """
    read = read_text(value, place)
    if len(read) > most:
        raise ValueRefused(f"must have at most {most} characters")
    return read


def read_queue_part(value: Any, place: DocumentPosition) -> str:
    """Return a part of a queue's name other than the task type."""
    return read_name(value, place, 128)


def read_boolean(value: Any, place: DocumentPosition) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value != 0
    if isinstance(value, str) and value.strip().lower() in ("true", "false", ""):
        return value.strip().lower() == "true"
    raise ValueRefused("must be true or false")


def read_number(value: Any, place: DocumentPosition) -> float:
    """Return a number as it is, or that of a text.

    Raises:
        ValueRefused: when the value is no finite number.
    """
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueRefused("must be a number")
    return number


class IntegerOf:
    """Reader of integers with a number of bits. Fractions are truncated."""

    def __init__(self, bits: int = 32) -> None:
        self.bits, self.least, self.most = bits, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def __call__(self, value: Any, place: DocumentPosition) -> int:
        number = _number(value)
        if not self.least <= number <= self.most:
            raise ValueRefused(f"must be a whole number up to {self.most}")
        return number


def _number(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if isinstance(value, str) and not value.strip():
        return 0
    if isinstance(value, str) and value.isascii() and WHOLE_NUMBER.fullmatch(value):
        return int(value)
    raise ValueRefused("must be a whole number")


class ChoiceOf:
    """Reads one of a few words."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, value: Any, place: DocumentPosition) -> str:
        if value not in self.names:
            raise ValueRefused(f"must be one of {', '.join(self.names)}")
        return value


def read_any(value: Any, place: DocumentPosition) -> Any:
    return value


def read_mapping(value: Any, place: DocumentPosition) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueRefused("must be an object")
    return value


class ListOf:
    """Reader of lists. An invalid item is reported and becomes None."""

    def __init__(self, item: Reader) -> None:
        self.item = item

    def __call__(self, value: Any, place: DocumentPosition) -> list[Any]:
        if not isinstance(value, list):
            raise ValueRefused("must be a list")
        return [_read_item(place.at(f"[{index}]"), self.item, each) for index, each in enumerate(value)]


class OrNull:
    """Reads null, or what another reader reads."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def __call__(self, value: Any, place: DocumentPosition) -> Any:
        return None if value is None else self.reader(value, place)


class MapOf:
    """Reads an object whose values all have one type."""

    def __init__(self, item: Reader) -> None:
        self.item = item

    def __call__(self, value: Any, place: DocumentPosition) -> dict[str, Any]:
        return {
            key: _read_item(place.at(f"[{key}]"), self.item, each) for key, each in read_mapping(value, place).items()
        }


def _read_item(place: DocumentPosition, reader: Reader, value: Any) -> Any:
    if value is None:
        _refuse(place, "must not be null", value)
    return read_at(place, reader, value)


def read_at(place: DocumentPosition, reader: Reader, value: Any) -> Any:
    """Return the converted value; None if it is absent or invalid, which is reported."""
    if value is None:
        return None
    try:
        return reader(value, place)
    except ValueRefused as refused:
        _refuse(place, str(refused), value)
        return None if place.fills else value


def _refuse(place: DocumentPosition, problem: str, value: Any) -> None:
    place.add_error(f"{place.path.rpartition('.')[2] or 'The document'} {problem}", value)
    place.refused.add(place.path)


class _Seconds(IntegerOf):
    """Reader of durations. Definitions that say "never" have numbers such as 2^53 - 1, which count as the maximum."""

    def __call__(self, value: Any, place: DocumentPosition) -> int:
        return max(-MAX_SECONDS, min(super().__call__(value, place), MAX_SECONDS))


seconds = _Seconds(64)
texts = ListOf(read_text)
