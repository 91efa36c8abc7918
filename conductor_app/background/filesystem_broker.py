"""Celery's messages as files in a folder, for one machine: kombu's transport, with two of its habits changed."""

import os
import uuid
from pathlib import Path
from time import time
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps

# A worker notices a stop signal after this wait: kombu's default of two seconds is too long for Ctrl-C.
MAX_WAIT_SECONDS = 0.2


class Channel(filesystem.Channel):
    """Puts a message into the folder whole: a reader that is quick would find kombu's own still empty, and crash."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:
        name = f"{round(time() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        folder = Path(self.data_folder_out)
        draft = folder / f".{name}.part"
        draft.write_text(dumps(payload))
        os.replace(draft, folder / name)


class Transport(filesystem.Transport):
    """Waits in short stretches, so that a worker can stop between them."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Deliver the messages of the folder.

        Raises:
            socket.timeout: when there is none within the timeout.
        """
        super().drain_events(connection, timeout=min(timeout or MAX_WAIT_SECONDS, MAX_WAIT_SECONDS))
