"""Renews the lease of an attempt while a long call is open, so that no other worker claims it."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from threading import Event, Thread

from django.db import connections

from conductor_app.engine.tasks.task_commands import renew_lease
from conductor_app.models.claimed_attempts import ClaimedAttempt
from conductor_app.transient_errors import discard_broken_connection

log = logging.getLogger(__name__)


@contextmanager
def renewed_lease(attempt: ClaimedAttempt) -> Generator[None]:
    """Renew the lease at each third of its duration, for the duration of the block."""
    ended = Event()
    renewer = Thread(target=_renew_until, args=(attempt, ended), name="renews a lease", daemon=True)
    renewer.start()
    try:
        yield
    finally:
        ended.set()
        renewer.join()


def _renew_until(attempt: ClaimedAttempt, ended: Event) -> None:
    if not attempt.lease_ms:
        return
    while not ended.wait(attempt.lease_ms / 3000):
        try:
            renew_lease(attempt.run_id, attempt.id, attempt.worker, worker=attempt.worker)
        except Exception as error:
            # The next try follows within the lease.
            log.warning("lease_not_renewed", extra={"attempt_id": attempt.id, "why": type(error).__name__})
            discard_broken_connection()
        finally:
            connections.close_all()
