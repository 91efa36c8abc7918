"""A lock that benchmarks on one machine share, so that their measurements do not overlap."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

LONGEST_SECONDS = 140.0


class MachineLock:
    """A file lock that consecutive measurements share for a while, so that they wait for it only once.

    Without a path, it locks nothing.
    """

    def __init__(self, path: str) -> None:
        self.path, self.since = path, 0.0
        self.file: IO[str] | None = None

    @classmethod
    def of_environment(cls) -> "MachineLock":
        return cls(os.environ.get("BENCH_LOCK", ""))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock at least for the time of the block."""
        if self.path and self.file is None:
            self.file = open(self.path, "a")  # noqa: SIM115
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.since = time.monotonic()
        yield
        if time.monotonic() - self.since > LONGEST_SECONDS:
            self.release()

    def release(self) -> None:
        if self.file is not None:
            self.file.close()
        self.file = None
