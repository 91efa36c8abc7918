"""Write the counts of attempts per minute."""

from collections.abc import Sequence

from .statements import MAX_BATCH_ROWS, execute

Count = tuple[str, str, int, int, int, int, int, int]
COLUMNS = ("scheduled", "started", "done", "failed", "busy_ms")
HOUR_MS = 3_600_000
ADD_COLUMNS = ", ".join(f"{column} = conductor_minutecount.{column} + excluded.{column}" for column in COLUMNS)


def add_counts(counts: Sequence[Count]) -> None:
    """Add to the stored counts of other processes.

    Each count has a kind, a name, a minute, the numbers of scheduled, started, completed and failed attempts, and
    their duration in milliseconds.
    """
    ordered = sorted(counts)  # All processes lock rows in the same order, so they cannot deadlock.
    for start in range(0, len(ordered), MAX_BATCH_ROWS):
        chunk = ordered[start : start + MAX_BATCH_ROWS]
        execute(
            f"INSERT INTO conductor_minutecount (kind, name, at, {', '.join(COLUMNS)}) VALUES "
            f"{', '.join(['(%s, %s, %s, %s, %s, %s, %s, %s)'] * len(chunk))} "
            f"ON CONFLICT (kind, name, at) DO UPDATE SET {ADD_COLUMNS}",
            [value for count in chunk for value in count],
        )


def add_up_hours(since: int, until: int) -> None:
    """Replace the counts per minute of full hours by one count per hour, at the minute in which the hour begins."""
    inside, params = f"at >= %s AND at < %s AND at <> at / {HOUR_MS} * {HOUR_MS}", [since, until]
    sums = ", ".join(f"SUM({column})" for column in COLUMNS)
    execute(
        f"INSERT INTO conductor_minutecount (kind, name, at, {', '.join(COLUMNS)}) "
        f"SELECT kind, name, at / {HOUR_MS} * {HOUR_MS}, {sums} FROM conductor_minutecount WHERE {inside} "
        f"GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 ON CONFLICT (kind, name, at) DO UPDATE SET {ADD_COLUMNS}",
        params,
    )
    execute(f"DELETE FROM conductor_minutecount WHERE {inside}", params)
