"""The loop of sweeps in a worker process, and the watchdog that sweeps when no other process does.

Celery beat, its broker or all its workers may have stopped. If nothing is due, the loop executes a few statements a
second.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from conductor_app.db.leases import FileHeartbeat, heartbeat, read_heartbeats
from conductor_app.db.transient_errors import describe_transient, discard_broken_connection, is_transient
from conductor_app.monitoring.commands import clock_check
from conductor_app.monitoring.queries.health import BEAT, SWEEPS, Liveness, liveness
from conductor_app.processes.sweeps import sweep_until
from conductor_app.settings import conf
from conductor_app.tasks.throughput import write_if_due
from conductor_app.utils import clock

from ..db.database import connection

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


CHECK_SECONDS = 0.5
STALE_SECONDS = 2.0
"""The time without a sweep after which this process sweeps."""


class SweepWatchdog:
    """Observes the heartbeats and replaces the sweeps while theirs has stopped.

    `sweep`: handles everything that becomes due within the given number of milliseconds. `is_regular`: there is no
    Celery that sweeps.
    """

    def __init__(
        self, sweep: Callable[[int], object], observed: Liveness | None = None, *, is_regular: bool = False
    ) -> None:
        self._sweep, self._liveness, self._is_regular = sweep, observed or liveness.value, is_regular
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
        # Before the first beat, Celery has not stopped: at the first start of a server it needs longer.
        if revision and not is_own and not self._is_regular:
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
    """Sweep if no other process does, write due counts, and compare this host's clock with the database's."""
    try:
        if own:
            own.beat(own.read())
        discard_broken_connection()
        if watchdog.check():
            after_sweep()
        write_if_due()
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
