"""Wait for the effects of other threads and processes, with a deadline."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
LOOK_EVERY_SECONDS = 0.02


def eventually(look: Callable[[], Found], seconds: float = 60) -> Found:
    """Call `look` until its result is true and return it.

    Raises:
        AssertionError: the deadline has passed.
    """
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        if found := look():
            return found
        time.sleep(LOOK_EVERY_SECONDS)
    raise AssertionError(f"Nothing came within {seconds} s; the last look found {look()!r}.")
