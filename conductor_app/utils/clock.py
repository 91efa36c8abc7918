"""The clock: the only module that reads the time, in epoch milliseconds as in all tables."""

import time

# Tests replace this to control the time.
_source = time.time_ns


def now() -> int:
    """Return the current time in epoch milliseconds."""
    return _source() // 1_000_000
