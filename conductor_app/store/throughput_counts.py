"""Counts of a minute, added to those that other processes have written."""

from collections.abc import Sequence

from .statements import CHUNK, execute

Count = tuple[str, str, int, int, int, int, int, int]
COLUMNS = ("scheduled", "started", "done", "failed", "busy_ms")
ADD_COLUMNS = ", ".join(f"{column} = conductor_minutecount.{column} + excluded.{column}" for column in COLUMNS)


def add_counts(counts: Sequence[Count]) -> None:
    """Add counts by kind, name and minute: scheduled, started, completed and failed attempts, and their time."""
    ordered = sorted(counts)  # two processes that write the same rows take them in the same order
    for start in range(0, len(ordered), CHUNK):
        some = ordered[start : start + CHUNK]
        execute(
            f"INSERT INTO conductor_minutecount (kind, name, at, {', '.join(COLUMNS)}) VALUES "
            f"{', '.join(['(%s, %s, %s, %s, %s, %s, %s, %s)'] * len(some))} "
            f"ON CONFLICT (kind, name, at) DO UPDATE SET {ADD_COLUMNS}",
            [value for count in some for value in count],
        )
