"""Liveness of background processes, observed by this process: a process lives while its heartbeat changes."""

from collections.abc import Callable
from time import monotonic

from ... import process_state

BEAT, SWEEPS = "beat", "sweeps"
"""The heartbeats: Celery beat, and whichever process sweeps."""


class Liveness:
    """The last change of each heartbeat. Times are this process's own, so clocks of other hosts have no effect."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[int, float]] = {}

    def observe(self, name: str, revision: int) -> float:
        """Record the revision of a heartbeat. Returns the seconds since its last change."""
        now = self._clock()
        seen, changed_at = self._seen.get(name, (None, now))
        if seen != revision:
            changed_at = now
        self._seen[name] = (revision, changed_at)
        return now - changed_at

    def seconds_since_change(self, name: str) -> float | None:
        """Return the seconds since the last change of a heartbeat, or None if this process does not observe it."""
        return self._clock() - self._seen[name][1] if name in self._seen else None


liveness = process_state.slot(Liveness)
"""The heartbeats that this process observes."""
