"""Sweep in this process when no other process does: Celery beat, its broker or all its workers may have stopped."""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from django.db import connection

from conductor_app import clock, conf
from conductor_app.engine.heartbeats import FileHeartbeat, heartbeat, read_heartbeats
from conductor_app.engine.server_clocks import clock_check
from conductor_app.insight.monitoring.liveness import BEAT, SWEEPS, Liveness, liveness
from conductor_app.transient_errors import discard_broken_connection

log = logging.getLogger(__name__)

CHECK_SECONDS = 0.5
STALE_SECONDS = 2.0
"""The time without a sweep after which this process sweeps."""


class SweepWatchdog:
    """Observes the heartbeats and replaces the sweeps while theirs has stopped.

    `sweep`: handles everything that becomes due within the given number of milliseconds.
    """

    def __init__(self, sweep: Callable[[int], object], observed: Liveness | None = None) -> None:
        self._sweep, self._liveness = sweep, observed or liveness.value
        self._sweeps = heartbeat(SWEEPS)
        self._own_revision = -1

    def check(self) -> bool:
        """Observe the heartbeats once, and sweep if no other process does. Returns True after a sweep."""
        beat_revision, revision = read_heartbeats(BEAT, SWEEPS)
        self._liveness.observe(BEAT, beat_revision)
        silent_seconds = self._liveness.observe(SWEEPS, revision)
        is_own = revision == self._own_revision
        if not is_own and silent_seconds < STALE_SECONDS:
            return False
        # Only one process per heartbeat succeeds, so that not every web process sweeps.
        self._own_revision = self._sweeps.beat(revision) or -1
        if self._own_revision < 0:
            return False
        if not is_own:
            log.warning("sweeps_replaced", extra={"silent_seconds": round(silent_seconds, 1)})
        self._sweep(clock.now() + round(CHECK_SECONDS * 1000))
        self._liveness.observe(SWEEPS, self._own_revision)
        return True


def start_watchdog(
    sweep: Callable[[int], object], *, process: str = "", after_sweep: Callable[[], None] = lambda: None
) -> None:
    """Start the watchdog in a thread of this process.

    `process`: the name of a heartbeat of this process, by which the supervisor notices that it has stopped.
    `after_sweep`: is called after each sweep of the watchdog.
    """
    Thread(target=_watch_forever, args=(sweep, process, after_sweep), name="sweep-watchdog", daemon=True).start()


def _watch_forever(sweep: Callable[[int], object], process: str, after_sweep: Callable[[], None]) -> None:
    watchdog, stopped = SweepWatchdog(sweep), Event()
    own = FileHeartbeat(Path(conf.heartbeat_folder) / process) if process and conf.heartbeat_folder else None
    while not stopped.wait(CHECK_SECONDS):
        watch_once(watchdog, own, after_sweep)


def watch_once(
    watchdog: SweepWatchdog, own: FileHeartbeat | None = None, after_sweep: Callable[[], None] = lambda: None
) -> None:
    """Sweep if no other process does, and compare the clock of this host with the database's."""
    try:
        if own:
            own.beat(own.read())
        discard_broken_connection()
        if watchdog.check():
            after_sweep()
        clock_check.value.check()
    except Exception as error:
        # The database may be unreachable for a while.
        log.warning("The sweep watchdog failed (%s: %s).", type(error).__name__, error)
    finally:
        _return_connection()


def _return_connection() -> None:
    """Return the connection to the pool. On SQLite it stays open, because opening it costs more than a query."""
    if connection.vendor == "postgresql":
        connection.close()
