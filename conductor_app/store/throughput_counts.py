"""Write the counts of attempts per minute."""

from collections.abc import Sequence

from .statements import CHUNK, execute

Count = tuple[str, str, int, int, int, int, int, int]
COLUMNS = ("scheduled", "started", "done", "failed", "busy_ms")
ADD_COLUMNS = ", ".join(f"{column} = conductor_minutecount.{column} + excluded.{column}" for column in COLUMNS)


def add_counts(counts: Sequence[Count]) -> None:
    """Add to the stored counts of other processes.

    Each count has a kind, a name, a minute, the numbers of scheduled, started, completed and failed attempts, and
    their duration in milliseconds.
    """
    ordered = sorted(counts)  # All processes lock rows in the same order, so they cannot deadlock.
    for start in range(0, len(ordered), CHUNK):
        chunk = ordered[start : start + CHUNK]
        execute(
            f"INSERT INTO conductor_minutecount (kind, name, at, {', '.join(COLUMNS)}) VALUES "
            f"{', '.join(['(%s, %s, %s, %s, %s, %s, %s, %s)'] * len(chunk))} "
            f"ON CONFLICT (kind, name, at) DO UPDATE SET {ADD_COLUMNS}",
            [value for count in chunk for value in count],
        )
