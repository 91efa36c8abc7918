"""Hints between the processes of one machine that share a SQLite file: a datagram names the queues.

SQLite itself could only say that something was written (`PRAGMA data_version`): every waiter would look again after
every commit, and somebody would have to ask two hundred times a second. A datagram costs nothing while all is quiet.
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

from .waiters import EARS

log = logging.getLogger(__name__)

# A longer list is cut to this one, which wakes everybody.
EVERYBODY = b"*"
LONGEST = 60_000
LONGEST_PATH = 80
# A neighbour whose inbox stays full is busy with hints anyway.
PATIENCE_SECONDS = 0.02


def publish(queues: Collection[str]) -> None:
    """Send the hint to every process that listens, but this one."""
    hint = orjson.dumps(list(queues))
    for inbox in _folder().iterdir():
        if inbox != _own.path:
            _send(hint if len(hint) <= LONGEST else EVERYBODY, inbox)


def start_listening() -> None:
    """Open this process's inbox, once."""
    if _own.path is None:
        _own.open()


class Inbox:
    """Where this process hears of the others: a socket, and a thread that sleeps on it."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._lock = Lock()

    def open(self) -> None:
        """Start to listen, unless another thread was first."""
        with self._lock:
            if self.path is None:
                path = _folder() / f"{os.getpid()}.{secrets.token_hex(4)}"
                heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                heard.bind(str(path))
                atexit.register(path.unlink, missing_ok=True)
                Thread(target=_listen, args=(heard,), name="wakeups", daemon=True).start()
                self.path = path


_own = Inbox()


def _listen(heard: socket.socket) -> None:
    while True:
        hint = heard.recv(LONGEST)
        with suppress(orjson.JSONDecodeError):
            EARS.wake_all() if hint == EVERYBODY else EARS.wake(orjson.loads(hint))


def _send(hint: bytes, inbox: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outgoing, suppress(TimeoutError, FileNotFoundError):
        outgoing.settimeout(PATIENCE_SECONDS)
        try:
            outgoing.sendto(hint, str(inbox))
        except ConnectionRefusedError:
            # Left behind by a process that was killed.
            inbox.unlink(missing_ok=True)


@cache
def _folder() -> Path:
    """Where the users of this database meet: beside it, if that path is short enough for a socket's 108 bytes."""
    database = Path(connection.settings_dict["NAME"])
    beside = database.parent / "wakeups"
    if database.is_absolute() and len(os.fsencode(beside)) <= LONGEST_PATH:
        beside.mkdir(mode=0o700, exist_ok=True)
        return beside
    return _temporary(hashlib.sha256(os.fsencode(database)).hexdigest()[:16])


def _temporary(name: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"conductor-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid == os.getuid():
        return folder
    log.warning("%s belongs to somebody else: wake-ups are off, workers wait up to a second longer", folder)
    return Path(tempfile.mkdtemp(prefix="conductor-"))
