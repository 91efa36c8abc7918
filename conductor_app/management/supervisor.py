"""Supervise child processes until a stop signal, and stop them within five seconds."""

import signal
from collections.abc import Callable, Sequence
from time import monotonic, sleep
from typing import Any

from .managed_process import ManagedProcess

CHECK_SECONDS = 0.1
# Longer than the three seconds in which gunicorn finishes requests.
GRACE_SECONDS = 4.0


class Supervisor:
    """The child processes and the stop flag."""

    def __init__(self, children: Sequence[ManagedProcess], report: Callable[[str], None]) -> None:
        self.children = children
        self.report = report
        self.is_stopping = False

    def run(self, on_check: Callable[[], None]) -> None:
        """Start and monitor all children, and stop them on the first SIGINT or SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        try:
            for child in self.children:
                child.start()
            while not self.is_stopping:
                self._check_processes()
                on_check()
                sleep(CHECK_SECONDS)
        finally:
            self._kill_remaining()

    def _check_processes(self) -> None:
        for child in self.children:
            child.restart_if_ended(self.report)
            child.kill_if_frozen(self.report)

    def _stop(self, *_: Any) -> None:
        self.is_stopping = True

    def _kill_remaining(self) -> None:
        for child in self.children:
            child.signal(signal.SIGTERM)
        kill_at = monotonic() + GRACE_SECONDS
        while monotonic() < kill_at and any(child.is_running for child in self.children):
            sleep(0.02)
        for child in self.children:
            child.kill()
