"""Search fields for numbers and times."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q

from .field_types import NOTHING, InvalidSearchValue, SearchField
from .query_parser import Clause, QueryValue
from .search_sql import compare_any

MIN_VALUE, MAX_VALUE = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class IntegerField(SearchField):
    """An integer column."""

    def value(self, value: QueryValue) -> int:
        """Parse an integer, limited to 64 bits.

        Raises:
            InvalidSearchValue: when the text is not an integer.
        """
        text = value.text.strip()
        if not text.removeprefix("-").isdecimal() or not text.isascii():
            raise InvalidSearchValue(value.position, "expected an integer")
        return max(MIN_VALUE, min(MAX_VALUE, int(text[:40])))

    def comparison(self, clause: Clause, left: Any) -> Q:
        """Build the comparison of a number.

        Raises:
            InvalidSearchValue: when the operator is STARTS_WITH, or a value is not a number.
        """
        if clause.operator == "STARTS_WITH":
            raise InvalidSearchValue(clause.position, f"{clause.field} is a number and does not support STARTS_WITH")
        return super().comparison(clause, left)

    def equals_any(self, left: Any, values: Sequence[QueryValue]) -> Q:
        return Q(compare_any(left, [self.value(value) for value in values]))

    def null_condition(self, left: Any) -> Q:
        return NOTHING


@dataclass(frozen=True)
class TimeField(IntegerField):
    """A time column. Values are epoch milliseconds or ISO 8601, such as 2026-11-21T07:00Z."""

    is_ordered: bool = False
    started_by_time: Callable[[int], Q] | None = None
    """Returns the condition for rows that were created by a given time: no row ends before its creation."""

    def rank_of(self, clause: Clause) -> int | None:
        return None if clause.operator == "NULL" else self.rank

    def bounds(self, clause: Clause) -> Q | None:
        if self.started_by_time is None or clause.operator not in ("=", "<", "<=", "BETWEEN"):
            return None
        return self.started_by_time(self.value(clause.values[-1]))

    def value(self, value: QueryValue) -> int:
        """Parse a time into epoch milliseconds. ISO 8601 without an offset is UTC.

        Raises:
            InvalidSearchValue: when the text is not a time.
        """
        text = value.text.strip()
        if text.removeprefix("-").isdecimal():
            return super().value(value)
        try:
            moment = datetime.fromisoformat(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            raise InvalidSearchValue(
                value.position, "expected a time in epoch milliseconds or ISO 8601, such as 2026-11-21T07:00:00Z"
            ) from None
