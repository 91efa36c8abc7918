"""Readiness of this server, the clocks of hosts, and the isolation of scripts.

A timer is late by the skew between the clocks of the process that sets it and of the process that handles it. Each
process compares its clock with that of the database. The skew is reported and not compensated: an offset that each
process measures for itself would make times jump in every process at another moment, whereas NTP corrects a clock for
all processes of a host, and gradually.
"""

import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from time import monotonic

from ..db.database import connection
from ..db.leases import write_probe
from ..db.size import clock_skew_ms, missing_migrations
from ..db.transient_errors import discard_broken_connection, is_database_error
from ..scripts.pool import Isolation, ScriptsUnavailable, probe_isolation
from ..settings import conf
from ..utils import clock, process_state
from .models import ServerClock
from .queries.health import BEAT, SWEEPS, liveness

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


MAX_SILENT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ReadinessCheck:
    """The result of one check; no error means that it passed. If it is not required, the server stays ready."""

    name: str
    error: str = ""
    is_required: bool = True


def check_readiness() -> list[ReadinessCheck]:
    """Return the results of all checks. Writes one row; checks that need an unreachable database are omitted."""
    try:
        database_checks = _database_checks()
    except Exception as fault:
        if not is_database_error(fault):
            raise
        discard_broken_connection()
        # The text of the error can contain the address of the database.
        error = "The database does not answer or refuses writes. Check its address and its disk space."
        database_checks = [ReadinessCheck("database", error)]
    return [*database_checks, *_process_checks()]


def _database_checks() -> list[ReadinessCheck]:
    missing = [] if _is_migrated() else missing_migrations()
    if not missing:
        # The table may be missing before.
        write_probe()
    ahead_ms = -clock_skew_ms()
    return [
        ReadinessCheck("database"),
        ReadinessCheck("migrations", f"Run `manage.py migrate`: {', '.join(missing)[:300]}." if missing else ""),
        ReadinessCheck("clock", skew_sentence(ahead_ms) if is_skewed(ahead_ms) else "", is_required=False),
    ]


@cache
def _is_migrated() -> bool:
    """Return True once all migrations are applied. Until then, every call checks again."""
    if missing_migrations():
        _is_migrated.cache_clear()
        return False
    return True


def _process_checks() -> Iterator[ReadinessCheck]:
    for name, is_required, effect in (
        (SWEEPS, True, "Timers are not processed"),
        (BEAT, False, "Celery beat does not run, so alerts, bulk operations and retention stand still"),
    ):
        silent_seconds = liveness.value.seconds_since_change(name)
        if silent_seconds is not None:
            is_silent = silent_seconds > MAX_SILENT_SECONDS
            error = f"{effect}: no heartbeat for {silent_seconds:.0f} s." if is_silent else ""
            yield ReadinessCheck(name, error, is_required)


ENGINES = {"javascript_jq": "JavaScript and jq", "monty": "Python"}
"""The languages of each engine."""


def script_isolation() -> dict[str, Isolation]:
    """Return the isolation by languages. The first call in a process starts a helper of each engine."""
    return {languages: _isolation(engine) for engine, languages in ENGINES.items()}


def isolation_warnings(is_root: bool) -> Iterator[str]:
    """Yield one sentence for each kind of isolation that the host should provide and does not.

    `is_root`: whether the server runs as root. Helpers of another user run as this user, which is expected.
    """
    for languages, isolation in script_isolation().items():
        if isolation.filter:
            yield f"Scripts in {languages} run without a filter of system calls: {isolation.filter}."
        if isolation.user and is_root:
            yield f"Scripts in {languages} run as root: {isolation.user}."


def _isolation(engine: str) -> Isolation:
    try:
        return _probe(engine)
    except ScriptsUnavailable as error:
        reason = str(error).rstrip(".")
        return Isolation(reason, reason)


@cache
def _probe(engine: str) -> Isolation:
    return probe_isolation(engine)
