"""Comparison of the clock of this host with that of the database, by each web process, worker and beat.

A timer is late by the skew between the clocks of the process that sets it and of the process that handles it. The skew
is reported and not compensated: an offset that each process measures for itself would make times jump in every
process at another moment, whereas NTP corrects a clock for all processes of a host, and gradually.
"""

import logging
import socket
from collections.abc import Callable
from time import monotonic

from django.db import connection

from .. import clock, conf, process_state
from ..insight.monitoring.database import clock_skew_ms
from ..models import ServerClock

log = logging.getLogger(__name__)

INTERVAL_SECONDS = 30.0
RETENTION_MS = 600_000
HOST = socket.gethostname()


def is_skewed(ahead_ms: int) -> bool:
    """Return True if the difference exceeds the tolerance. A tolerance of 0 disables the check."""
    return 0 < conf.max_clock_skew_ms < abs(ahead_ms)


def skew_sentence(ahead_ms: int, host: str = HOST) -> str:
    """Return the difference as a sentence for operators."""
    direction = "ahead of" if ahead_ms > 0 else "behind"
    return (
        f"The clock of {host} is {abs(ahead_ms):,} ms {direction} the database's. Timers are late by the difference. "
        "Synchronize both hosts (NTP)."
    )


class ClockCheck:
    """The comparison in one process, at most once per INTERVAL_SECONDS."""

    def __init__(self, time: Callable[[], float] = monotonic) -> None:
        self._time = time
        self._checked_at = float("-inf")
        self._was_skewed = False

    def check(self) -> None:
        """Compare the clocks if it is time, save the result for the pages, and log when the state changes."""
        if self._time() - self._checked_at < INTERVAL_SECONDS or connection.vendor != "postgresql":
            return
        self._checked_at = self._time()
        skew = clock_skew_ms()
        _save(-skew, clock.now() + skew)
        self._log_change(-skew)

    def _log_change(self, ahead_ms: int) -> None:
        is_now_skewed = is_skewed(ahead_ms)
        if is_now_skewed and not self._was_skewed:
            log.warning("clock_skewed", extra={"host": HOST, "ahead_ms": ahead_ms})
        elif self._was_skewed and not is_now_skewed:
            log.info("clock_synchronized", extra={"host": HOST, "ahead_ms": ahead_ms})
        self._was_skewed = is_now_skewed


def _save(ahead_ms: int, database_now: int) -> None:
    """Save the difference of this host, and delete the rows of hosts that have stopped."""
    ServerClock.objects.update_or_create(host=HOST[:255], defaults={"ahead_ms": ahead_ms, "measured_at": database_now})
    ServerClock.objects.filter(measured_at__lt=database_now - RETENTION_MS).delete()


clock_check = process_state.slot(ClockCheck)
"""The comparison in this process."""
