"""Waiting for what other threads and processes bring about, with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
LOOK_EVERY_SECONDS = 0.02


def eventually(look: Callable[[], Found], seconds: float = 15) -> Found:
    """What the look finds as soon as it is something; the test fails when time is up."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        if found := look():
            return found
        time.sleep(LOOK_EVERY_SECONDS)
    raise AssertionError(f"Nothing came within {seconds} s; the last look found {look()!r}.")
