"""The scheduler of Celery beat, and the election of its leader.

Of any number of beats, one sends jobs; another one takes over when its heartbeat stops.
"""

import logging
from collections.abc import Callable
from time import monotonic

from django_celery_beat.schedulers import DatabaseScheduler

from ..db.database import connection
from ..db.leases import ProcessHeartbeat, heartbeat
from ..db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ..monitoring.commands import clock_check
from ..monitoring.queries.health import BEAT
from ..utils import fault_points

log = logging.getLogger(__name__)

RENEW_SECONDS = 0.5
TAKEOVER_SECONDS = 2.0
"""The time without a heartbeat after which a standby takes over. Together with its checks, this is below 3 s."""


class LeaderLease:
    """This process's part in the election of a leader."""

    def __init__(self, name: str, heartbeat: ProcessHeartbeat, clock: Callable[[], float] = monotonic) -> None:
        self._name, self._heartbeat, self._clock = name, heartbeat, clock
        self._seen = -1
        self._seen_at = self._checked_at = float("-inf")
        self._is_leader = False

    def is_held(self) -> bool:
        """Return True if this process is the leader. Renews or takes over the lease; call it at least once a second."""
        now = self._clock()
        if now - self._checked_at < RENEW_SECONDS:
            return self._is_leader
        self._checked_at = now
        if self._is_leader:
            self._renew()
        if not self._is_leader:
            self._take_over_if_free(now)
        return self._is_leader

    def release(self) -> None:
        """Give up the lease, if this process holds it."""
        if self._is_leader:
            self._heartbeat.release(self._seen)
            self._is_leader = False

    def _renew(self) -> None:
        """Renew the lease with one statement, which fails if another process has taken it over."""
        self._advance()
        if not self._is_leader:
            log.warning("leadership_lost", extra={"lease": self._name})

    def _take_over_if_free(self, now: float) -> None:
        revision = self._heartbeat.read()
        if revision != self._seen:
            # After a read that took seconds, `now` is long past, but the leader may have renewed the lease just before.
            self._seen, self._seen_at = revision, self._clock()
        if revision == 0 or now - self._seen_at >= TAKEOVER_SECONDS:
            self._advance()
            if self._is_leader:
                # A new or released lease is taken at each start. Only a takeover from a silent leader is an event.
                log.log(logging.INFO if revision else logging.DEBUG, "leadership_taken", extra={"lease": self._name})
                fault_points.reach("leadership-taken")

    def _advance(self) -> None:
        advanced = self._heartbeat.beat(self._seen)
        self._is_leader = bool(advanced)
        self._seen, self._seen_at = advanced or self._seen, self._clock()


CHANGES_SECONDS = 5.0
"""The time between two checks for changes of the schedule, which django-celery-beat would check at every call."""


class LeaderScheduler(DatabaseScheduler):
    """Sends jobs while this process is the leader."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        self._lease = LeaderLease(BEAT, heartbeat(BEAT))
        self._changes_checked_at = float("-inf")
        super().__init__(*args, **kwargs)

    def tick(self, *args: object, **kwargs: object) -> float:
        """Send the due jobs, if this process is the leader. Returns the seconds until the next call."""
        if not self._is_leader():
            return RENEW_SECONDS
        return min(super().tick(*args, **kwargs), RENEW_SECONDS)

    def schedule_changed(self) -> bool:
        """Return True if an operator has changed the schedule since the last check."""
        if monotonic() - self._changes_checked_at < CHANGES_SECONDS:
            return False
        self._changes_checked_at = monotonic()
        return bool(super().schedule_changed())

    def close(self) -> None:
        """Store the state of the schedule and release the lease."""
        super().close()
        try:
            self._lease.release()
        except Exception as error:
            # A standby takes over when it notices that the heartbeat has stopped.
            if not is_transient(error):
                raise

    def _is_leader(self) -> bool:
        try:
            clock_check.value.check()
            return self._lease.is_held()
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("No job is sent: %s (%s)", describe_transient(error), error)
            discard_broken_connection()
            connection.close()
            return False
