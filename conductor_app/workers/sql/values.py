"""Convert results of databases to JSON, within the limits of a task."""

import json
import math
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from conductor_app.workers.sql.statement import ResultTooLarge, SqlLimits

EXACT_DIGITS = 15
"""The number of decimal digits that every JSON parser preserves."""


def collect_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], limits: SqlLimits) -> list[dict[str, Any]]:
    """Return the rows as objects.

    Raises:
        ResultTooLarge: when they exceed a limit. Further rows are not read.
    """
    keys, result, size = distinct_names(names), [], 0
    for row in rows:
        result.append(dict(zip(keys, map(to_json_value, row), strict=True)))
        size += len(json.dumps(result[-1], ensure_ascii=False))
        if len(result) > limits.max_rows:
            raise ResultTooLarge(f"The result has more than {limits.max_rows} rows. Select fewer rows.")
        if size > limits.max_bytes:
            raise ResultTooLarge(f"The result is longer than {limits.max_bytes} bytes. Select less data.")
    return result


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names of the columns, with numbers appended to repeated names."""
    counts: Counter[str] = Counter()
    keys = []
    for name in names:
        counts[name] += 1
        keys.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    return keys


def to_json_value(value: Any) -> Any:
    """Return a value as JSON: times in ISO 8601, bytes in base64, and numbers that JSON cannot represent as text."""
    if value is None or isinstance(value, bool | str):
        return value.replace("\0", "") if isinstance(value, str) else value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float | Decimal):
        return to_json_number(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json_value(inner) for inner in value]
    return str(value)


def to_json_number(value: float | Decimal) -> Any:
    """Return a number, as text if JSON cannot represent it."""
    if not math.isfinite(value):
        return str(value)
    if isinstance(value, float):
        return value
    if len(value.as_tuple().digits) > EXACT_DIGITS:
        return str(value)
    return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)
