"""Trigger the job of built-in workers as soon as they have new work, and the broker that stores messages as files.

Without the trigger, beat starts the job up to one second later. The broker is for one machine: kombu's transport with
two changes.
"""

import logging
import os
import uuid
from collections import deque
from collections.abc import Collection
from pathlib import Path
from threading import Lock
from time import monotonic, time
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps

from conductor_app import notifications
from conductor_app.utils import process_state

# A worker notices a stop signal after at most this time. kombu's default of two seconds is too long for Ctrl-C.
MAX_WAIT_SECONDS = 0.2


class Channel(filesystem.Channel):
    """Writes messages atomically. With kombu's own channel, a reader could find an empty file and crash."""

    # kombu's base classes name the second parameter differently.
    def _put(self, queue: str, payload: dict[str, Any], **_: object) -> None:  # type: ignore[override]  # see above
        name = f"{round(time() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        folder = Path(self.data_folder_out)
        draft = folder / f".{name}.part"
        draft.write_text(dumps(payload))
        os.replace(draft, folder / name)


class Transport(filesystem.Transport):
    """Waits for short periods, so that a worker can stop in between."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **_: object) -> None:
        """Deliver the messages in the folder.

        Raises:
            TimeoutError: when no message arrives within the timeout in seconds.
        """
        super().drain_events(connection, timeout=min(timeout or MAX_WAIT_SECONDS, MAX_WAIT_SECONDS))


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
