"""The scheduler of Celery beat. Of any number of beats, one sends jobs; the others wait to take over."""

import logging
from contextlib import suppress
from time import monotonic
from typing import Any

from django.db import DatabaseError, connection
from django_celery_beat.schedulers import DatabaseScheduler

from conductor_app.engine.heartbeats import heartbeat
from conductor_app.engine.server_clocks import clock_check
from conductor_app.insight.monitoring.liveness import BEAT

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
        with suppress(DatabaseError):
            self._lease.release()

    def _is_leader(self) -> bool:
        try:
            clock_check.check()
            return self._lease.is_held()
        except DatabaseError as error:
            log.warning("The database cannot be reached, so no job is sent (%s).", error)
            connection.close()
            return False
