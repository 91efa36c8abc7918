"""The scheduler of Celery beat. Of any number of beats, one sends jobs; the others wait to take over."""

import logging
from time import monotonic
from typing import Any

from django.db import connection
from django_celery_beat.schedulers import DatabaseScheduler

from conductor_app.engine.heartbeats import heartbeat
from conductor_app.engine.server_clocks import clock_check
from conductor_app.insight.monitoring.liveness import BEAT
from conductor_app.transient_errors import describe_transient, discard_broken_connection, is_transient

from .leader_lease import RENEW_SECONDS, LeaderLease

log = logging.getLogger(__name__)

CHANGES_SECONDS = 5.0
"""The time between two checks for changes of the schedule, which django-celery-beat would check at every call."""


class LeaderScheduler(DatabaseScheduler):
    """Sends jobs while this process is the leader."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._lease = LeaderLease(BEAT, heartbeat(BEAT))
        self._changes_checked_at = float("-inf")
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
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
