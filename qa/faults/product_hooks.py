"""What the settings of this package add to a process of the server: fault points and a clock that can be stepped.

The environment variable FAULTS_FOLDER names the folder of the test's orders, and FAULTS_ROLE the process:

- `points/NAME` holds a signal's number. The first process that reaches the fault point takes the file and sends itself
  the signal.
- `clocks/ROLE` holds an offset in milliseconds.
- `ready/ROLE` holds the id of the Celery process that is ready, written by that process.
"""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

from celery.signals import beat_init, worker_ready

from conductor_app.utils import clock, fault_points

FOLDER = "FAULTS_FOLDER"
ROLE = "FAULTS_ROLE"
OFFSET_READ_SECONDS = 0.05


def install() -> None:
    """Replace the clock and set the handler of fault points."""
    folder = Path(os.environ[FOLDER])
    fault_points.set_handler(FaultPointHandler(folder / "points"))
    clock._source = SteppedClock(folder / "clocks" / os.environ[ROLE])
    for is_ready in (worker_ready, beat_init):
        is_ready.connect(partial(_write_process_id, folder / "ready" / os.environ[ROLE]), weak=False)


def _write_process_id(path: Path, **_: Any) -> None:
    path.write_text(str(os.getpid()))


class FaultPointHandler:
    """Sends a signal to this process at a point whose file exists."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, point: str) -> None:
        # Renaming a file succeeds in one process only.
        taken = self._folder / f"{point}.taken.{os.getpid()}"
        try:
            os.rename(self._folder / point, taken)
        except FileNotFoundError:
            return
        os.kill(os.getpid(), int(taken.read_text()))


class SteppedClock:
    """The time of the machine plus the offset in a file, which is renamed into its place."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset_ns, self._read_at = path, 0, float("-inf")

    def __call__(self) -> int:
        if time.monotonic() - self._read_at > OFFSET_READ_SECONDS:
            self._read_at = time.monotonic()
            try:
                self._offset_ns = int(self._path.read_text()) * 1_000_000
            except FileNotFoundError:
                self._offset_ns = 0
        return time.time_ns() + self._offset_ns
