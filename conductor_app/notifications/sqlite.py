"""Notifications between processes that share a SQLite file: a datagram names the queues.

SQLite can only report that the file has changed (`PRAGMA data_version`): every waiter would read again after every
commit, and a process would have to poll two hundred times a second. A datagram costs nothing while the server is idle.
"""

import atexit
import hashlib
import logging
import os
import secrets
import socket
import tempfile
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock, Thread

import orjson
from django.db import connection

from .waiters import WAITERS

log = logging.getLogger(__name__)

# A longer list is cut to this one, which wakes everybody.
WAKE_EVERYONE = b"*"
MAX_HINT_BYTES = 60_000
MAX_SOCKET_PATH = 80
# A neighbour whose inbox stays full is busy with hints anyway.
SEND_TIMEOUT_SECONDS = 0.02


def publish(queues: Collection[str]) -> None:
    """Send the hint to every process that listens, but this one."""
    hint = orjson.dumps(list(queues))
    for inbox in _socket_folder().iterdir():
        if inbox != _inbox.path:
            _send_hint(hint if len(hint) <= MAX_HINT_BYTES else WAKE_EVERYONE, inbox)


def start_listening() -> None:
    """Open this process's inbox, once."""
    if _inbox.path is None:
        _inbox.open()


class HintInbox:
    """The socket of this process, and the thread that reads it."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._lock = Lock()

    def open(self) -> None:
        """Start to listen, unless another thread was first."""
        with self._lock:
            if self.path is None:
                path = _socket_folder() / f"{os.getpid()}.{secrets.token_hex(4)}"
                heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                heard.bind(str(path))
                atexit.register(path.unlink, missing_ok=True)
                Thread(target=_receive_hints, args=(heard,), name="wakeups", daemon=True).start()
                self.path = path


_inbox = HintInbox()


def _receive_hints(heard: socket.socket) -> None:
    while True:
        hint = heard.recv(MAX_HINT_BYTES)
        with suppress(orjson.JSONDecodeError):
            WAITERS.wake_all() if hint == WAKE_EVERYONE else WAITERS.wake(orjson.loads(hint))


def _send_hint(hint: bytes, inbox: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outgoing, suppress(TimeoutError, FileNotFoundError):
        outgoing.settimeout(SEND_TIMEOUT_SECONDS)
        try:
            outgoing.sendto(hint, str(inbox))
        except ConnectionRefusedError:
            # Left behind by a process that was killed.
            inbox.unlink(missing_ok=True)


@cache
def _socket_folder() -> Path:
    """Return the folder of the sockets: beside the database if the path fits into a socket's 108 bytes."""
    database = Path(connection.settings_dict["NAME"])
    beside = database.parent / "wakeups"
    if database.is_absolute() and len(os.fsencode(beside)) <= MAX_SOCKET_PATH:
        beside.mkdir(mode=0o700, exist_ok=True)
        return beside
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
