"""The loop of sweeps in a worker process. If nothing is due, it executes a few statements a second."""

import logging
from collections.abc import Callable
from threading import Event
from time import monotonic

from django.db import connection

from conductor_app import clock
from conductor_app.engine.heartbeats import heartbeat
from conductor_app.engine.sweeps import sweep_until
from conductor_app.insight.monitoring.liveness import SWEEPS
from conductor_app.transient_errors import describe_transient, discard_broken_connection, is_transient

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
"""The interval of the checks for due rows."""
BEAT_SECONDS = 1.0
"""The time between two heartbeats, and between two checks for due jobs."""


def sweep_until_time(ends_at: float, stopping: Event, start_due_jobs: Callable[[], None]) -> None:
    """Sweep, at least once, until `ends_at` or until `stopping`.

    `ends_at`: a time of the monotonic clock. `start_due_jobs`: is called once a second.
    """
    loop = SweepLoop(start_due_jobs)
    while not stopping.is_set():
        next_at = monotonic() + TICK_SECONDS
        try:
            loop.sweep()
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("Nothing is swept: %s (%s)", describe_transient(error), error)
            discard_broken_connection()
            connection.close()
        if next_at >= ends_at:
            return
        stopping.wait(max(next_at - monotonic(), 0))


class SweepLoop:
    """The state of the loop: the heartbeat, and when it last changed."""

    def __init__(self, start_due_jobs: Callable[[], None]) -> None:
        self._start_due_jobs, self._heartbeat = start_due_jobs, heartbeat(SWEEPS)
        self._revision, self._beat_at = -1, float("-inf")

    def sweep(self) -> None:
        """Handle everything that becomes due before the next call."""
        if monotonic() - self._beat_at >= BEAT_SECONDS:
            self._beat_at = monotonic()
            # Another process changes the heartbeat only if it sweeps too.
            self._revision = self._heartbeat.beat(self._revision) or self._heartbeat.beat(self._heartbeat.read())
            self._start_due_jobs()
        sweep_until(clock.now() + round(TICK_SECONDS * 1000))
