"""Execute the tasks of isolation groups. Each queue has its own threads, which tasks of other queues cannot block."""

import logging
from collections.abc import Iterable
from threading import Event, Lock, Thread
from time import sleep

from django.db import connections

from .. import conf, notifications
from ..core.step_structure import types_where
from ..engine.queues.queue_lookups import release_connection
from ..transient_errors import describe_transient, discard_broken_connection, is_transient
from . import runner

log = logging.getLogger(__name__)

WAIT_MS = 20_000
"""The time that one claim waits for work, in milliseconds."""
RETRY_SECONDS = 1.0
FINISHING_SECONDS = 2.0
"""The time in which a stopped process can finish its tasks, in seconds."""


def queues_of_groups(groups: Iterable[str]) -> list[str]:
    """Return the queues of these groups, each of which is written as `group`, `@space` or `@space-group`."""
    endings = [group if group.startswith("@") else f"-{group}" for group in groups]
    return [f"{task_type}{ending}" for ending in endings for task_type in sorted(types_where("is_isolated"))]


class QueueServer:
    """The threads that serve one queue. One thread waits for a claim while the others execute tasks."""

    def __init__(self, queue: str, stopping: Event, threads: int) -> None:
        self.queue, self._stopping, self._claim_lock = queue, stopping, Lock()
        self.threads = [Thread(target=self._serve, name=f"serves {queue}", daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                runner.report_kept_results()
                with self._claim_lock:
                    claimed = [] if self._stopping.is_set() else runner.claim_one(self.queue, WAIT_MS)
                for attempt in claimed:
                    runner.run_attempt(attempt)
            except Exception as error:
                # Mostly the database is unreachable. The thread tries again.
                why = describe_transient(error) if is_transient(error) else type(error).__name__
                log.warning("queue_not_served", extra={"queue": self.queue, "why": why})
                discard_broken_connection()
                self._stopping.wait(RETRY_SECONDS)
            release_connection()
        connections.close_all()


def serve_groups(stopping: Event) -> None:
    """Execute the tasks of the configured groups until `stopping`; then release unfinished tasks."""
    for queue in queues_of_groups(conf.isolation_groups):
        QueueServer(queue, stopping, conf.isolation_threads)
    stopping.wait()
    notifications.wake_all_and_close()
    sleep(FINISHING_SECONDS)
    runner.release_unfinished()
