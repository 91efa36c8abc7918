"""Trigger the job of built-in workers as soon as they have new work, instead of up to one second later by beat."""

import logging
from collections import deque
from collections.abc import Collection
from threading import Lock
from time import monotonic

from conductor_app import notifications
from conductor_app.utils import process_state

log = logging.getLogger(__name__)

# Each message occupies one thread, which empties the queues. More messages at the same time would find no work.
MESSAGES, SPAN_SECONDS = 4, 0.05
MIN_INTERVAL_SECONDS = 5.0


def connect_triggers() -> None:
    """Connect the trigger to the announcements of this process."""
    notifications.on_announce(trigger_built_in_workers)


def trigger_built_in_workers(queues: Collection[str]) -> None:
    """Fire the trigger for each attempt of a built-in worker."""
    from conductor_app.system_tasks.registry import fast_queues, slow_queues

    for queue in queues:
        if queue in fast_queues():
            _trigger.value.fire()
        elif queue in slow_queues():
            _model_trigger.value.fire()


class JobTrigger:
    """Sends a job to Celery, at a limited rate."""

    def __init__(self, job: str) -> None:
        self._job, self._lock = job, Lock()
        self._fired_at: deque[float] = deque([float("-inf")] * MESSAGES, maxlen=MESSAGES)
        self._paused_until = 0.0

    def fire(self) -> None:
        """Send the job, unless the rate is reached. Never raises: beat sends the job within one second anyway."""
        if not self._may_fire(monotonic()):
            return
        from conductor_app.processes import jobs

        try:
            getattr(jobs, self._job).apply_async(retry=False, expires=2)
        except Exception as error:
            # Clients of brokers raise exceptions of many types. The work is committed already.
            log.warning("The broker cannot be reached, so built-in workers start up to one second later (%s).", error)
            self._paused_until = monotonic() + MIN_INTERVAL_SECONDS

    def _may_fire(self, now: float) -> bool:
        with self._lock:
            if now < self._paused_until or now - self._fired_at[0] < SPAN_SECONDS:
                return False
            self._fired_at.append(now)
            return True


_trigger = process_state.slot(lambda: JobTrigger("work"))
_model_trigger = process_state.slot(lambda: JobTrigger("call_models"))
