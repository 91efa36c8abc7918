"""Notifications between processes that share a SQLite file: datagrams with the new attempts of queues.

SQLite itself can only report that the file has changed (`PRAGMA data_version`). A process would have to poll that 200
times per second, and every waiter would read its queue after every commit. Datagrams cost nothing on an idle server.
"""

import atexit
import hashlib
import logging
import os
import secrets
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock, Thread

import orjson

from ..db.database import connection
from .channel import WAITERS

log = logging.getLogger(__name__)

# Replaces a notification that exceeds the size of a datagram. It wakes all waiters.
WAKE_EVERYONE = b"*"
MAX_HINT_BYTES = 60_000
MAX_SOCKET_PATH = 80
# A process with a full socket has unread notifications, so it needs no further one.
SEND_TIMEOUT_SECONDS = 0.02


def publish(announced: Mapping[str, int]) -> None:
    """Send the notification to all other listening processes."""
    hint = orjson.dumps(announced)
    for inbox in _socket_folder().iterdir():
        if inbox != _inbox.path:
            _send_hint(hint if len(hint) <= MAX_HINT_BYTES else WAKE_EVERYONE, inbox)


def start_listening() -> None:
    """Open the socket of this process, unless it is open already."""
    if _inbox.path is None:
        _inbox.open()


class HintInbox:
    """The socket of this process, and the thread that reads from it."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._lock = Lock()

    def open(self) -> None:
        """Start to listen, unless another thread has done so."""
        with self._lock:
            if self.path is None:
                path = _socket_folder() / f"{os.getpid()}.{secrets.token_hex(4)}"
                receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                receiver.bind(str(path))
                atexit.register(path.unlink, missing_ok=True)
                Thread(target=_receive_hints, args=(receiver,), name="wakeups", daemon=True).start()
                self.path = path


_inbox = HintInbox()


def _receive_hints(receiver: socket.socket) -> None:
    while True:
        hint = receiver.recv(MAX_HINT_BYTES)
        with suppress(orjson.JSONDecodeError):
            WAITERS.value.wake_all() if hint == WAKE_EVERYONE else WAITERS.value.wake(orjson.loads(hint))


def _send_hint(hint: bytes, inbox: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outgoing, suppress(TimeoutError, FileNotFoundError):
        outgoing.settimeout(SEND_TIMEOUT_SECONDS)
        try:
            outgoing.sendto(hint, str(inbox))
        except ConnectionRefusedError:
            # The process that listened on this socket was killed.
            inbox.unlink(missing_ok=True)


@cache
def _socket_folder() -> Path:
    """Return the folder of the sockets: next to the database, unless the path exceeds the limit of 108 bytes."""
    database = Path(connection.settings_dict["NAME"])
    folder = database.parent / "wakeups"
    if database.is_absolute() and len(os.fsencode(folder)) <= MAX_SOCKET_PATH:
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder
    return _temporary_folder(hashlib.sha256(os.fsencode(database)).hexdigest()[:16])


def _temporary_folder(name: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"conductor-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid == os.getuid():
        return folder
    log.warning(
        "%s is owned by another user. Notifications are disabled, so polls may wait up to one second longer.", folder
    )
    return Path(tempfile.mkdtemp(prefix="conductor-"))
