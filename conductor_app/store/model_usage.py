"""Write the hourly usage of models."""

from collections.abc import Sequence
from typing import Any

from .statements import execute

KEY = ("hour", "integration", "model", "definition", "caller")
SUMS = ("calls", "failures", "prompt_tokens", "completion_tokens", "cost", "duration_ms")
COLUMNS = (*KEY, *SUMS)
ADD_USAGE = (
    f"INSERT INTO conductor_modelusage ({', '.join(COLUMNS)}) VALUES ({', '.join(['%s'] * len(COLUMNS))}) "
    f"ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET "
    + ", ".join(f"{column} = conductor_modelusage.{column} + excluded.{column}" for column in SUMS)
)


def add_usage(key: Sequence[Any], sums: Sequence[int]) -> None:
    """Add to the usage of one hour. `key`: the values of KEY. `sums`: those of SUMS."""
    execute(ADD_USAGE, [*key, *sums])


def delete_usage(before: int, limit: int) -> int:
    """Delete usage of hours before a time in epoch milliseconds, oldest first. Returns the number of rows."""
    return _delete_oldest("conductor_modelusage", "hour", before, limit)


def delete_calls(before: int, limit: int) -> int:
    """Delete the calls that began before a time in epoch milliseconds, oldest first. Returns the number of rows."""
    return _delete_oldest("conductor_modelcall", "started_at", before, limit)


def _delete_oldest(table: str, column: str, before: int, limit: int) -> int:
    return execute(
        f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {column} < %s ORDER BY {column} LIMIT %s)",
        [before, limit],
    )
