"""Heartbeats of background processes: a file on one machine, a row in a cluster.

Files cost no write to the database, which would keep the disk of an idle machine busy.
"""

import os
import socket
from pathlib import Path
from typing import Protocol

from ..db import leases
from ..settings import conf

HOST = socket.gethostname()


class ProcessHeartbeat(Protocol):
    """A number that the active process changes continuously."""

    def read(self) -> int:
        """Return the current number, 0 before the first beat."""
        ...

    def beat(self, seen: int) -> int:
        """Change the number, if it is still `seen`. Returns the new number, or 0 if another process was faster."""
        ...

    def release(self, seen: int) -> None:
        """Set the number to 0, if it is still `seen`, so that another process need not wait."""
        ...


class FileHeartbeat:
    """The modification time of a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def beat(self, seen: int) -> int:
        if self.read() != seen:
            return 0
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path.touch(mode=0o600)
        return self.read()

    def release(self, seen: int) -> None:
        if self.read() == seen:
            self._path.unlink(missing_ok=True)


class LeaseHeartbeat:
    """The revision of a lease."""

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self) -> int:
        return leases.read_revision(self._name)

    def beat(self, seen: int) -> int:
        return leases.advance(self._name, f"{HOST}:{os.getpid()}", seen)

    def release(self, seen: int) -> None:
        leases.release(self._name, seen)


def heartbeat(name: str) -> ProcessHeartbeat:
    """Return the heartbeat of this name, in the folder of the settings or in the database."""
    if conf.heartbeat_folder:
        return FileHeartbeat(Path(conf.heartbeat_folder) / name)
    return LeaseHeartbeat(name)


def read_heartbeats(*names: str) -> list[int]:
    """Return the numbers of several heartbeats, with at most one statement."""
    if conf.heartbeat_folder:
        return [heartbeat(name).read() for name in names]
    return leases.read_revisions(names)
