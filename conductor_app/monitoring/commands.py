"""Readiness of this server: whether it can accept work, and whether background jobs run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ..insight.monitoring.database import clock_skew_ms, missing_migrations
from ..insight.monitoring.liveness import BEAT, SWEEPS, liveness
from ..models import replica
from ..store.leases import write_probe
from ..transient_errors import discard_broken_connection, is_database_error
from .server_clocks import is_skewed, skew_sentence

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
    return [*database_checks, *_replica_checks(), *_process_checks()]


def _database_checks() -> list[ReadinessCheck]:
    missing = _unapplied_migrations()
    if not missing:
        # The table may be missing before.
        write_probe()
    ahead_ms = -clock_skew_ms()
    return [
        ReadinessCheck("database"),
        ReadinessCheck("migrations", f"Run `manage.py migrate`: {', '.join(missing)[:300]}." if missing else ""),
        ReadinessCheck("clock", skew_sentence(ahead_ms) if is_skewed(ahead_ms) else "", is_required=False),
    ]


def _replica_checks() -> Iterator[ReadinessCheck]:
    """Yield the check of the replica, if there is one. Pages and searches read the primary while it is not usable."""
    if not replica.is_configured():
        return
    state = replica.cached_state.value.state()
    if state.lag_seconds is None:
        error = "The replica does not answer, or is no replica."
    else:
        error = "" if state.is_usable else f"The replica is {state.lag_seconds:.0f} s behind."
    yield ReadinessCheck("replica", error, is_required=False)


def _unapplied_migrations() -> list[str]:
    return [] if _is_migrated() else missing_migrations()


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
