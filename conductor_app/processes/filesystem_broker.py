"""A Celery broker that stores messages as files, for one machine: kombu's transport with two changes."""

import os
import uuid
from pathlib import Path
from time import time
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps

# A worker notices a stop signal after at most this time. kombu's default of two seconds is too long for Ctrl-C.
MAX_WAIT_SECONDS = 0.2


class Channel(filesystem.Channel):
    """Writes messages atomically. With kombu's own channel, a reader could find an empty file and crash."""

    # kombu's base classes name the second parameter differently.
    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]  # see above
        name = f"{round(time() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        folder = Path(self.data_folder_out)
        draft = folder / f".{name}.part"
        draft.write_text(dumps(payload))
        os.replace(draft, folder / name)


class Transport(filesystem.Transport):
    """Waits for short periods, so that a worker can stop in between."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **_: Any) -> None:
        """Deliver the messages in the folder.

        Raises:
            TimeoutError: when no message arrives within the timeout in seconds.
        """
        super().drain_events(connection, timeout=min(timeout or MAX_WAIT_SECONDS, MAX_WAIT_SECONDS))
