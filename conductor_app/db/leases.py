"""Which process is active in a role that only one may have: leases, and heartbeats of background processes.

A heartbeat is a lease in a cluster, and a file on one machine. A file costs no write to the database, which would keep
the disk of an idle machine busy.
"""

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from django.db import models
from django.db.models import F

from ..settings import conf
from .statements import execute, fetch, placeholders

HOST = socket.gethostname()
PROBE = "write probe"
"""The row that health checks write."""


class Lease(models.Model):
    """The holder of a role. The holder increases the revision continuously; a constant revision means it is gone.

    The row contains no time, so a lease does not depend on the clocks of its hosts.
    """

    name = models.CharField(max_length=64, primary_key=True)
    holder = models.CharField(max_length=255, default="", blank=True)
    revision = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


def read_revision(name: str) -> int:
    """Return the revision of a lease, 0 before its first holder."""
    [revision] = read_revisions([name])
    return revision


def read_revisions(names: Sequence[str]) -> list[int]:
    """Return the revisions of several leases, in order."""
    rows = fetch(f"SELECT name, revision FROM conductor_lease WHERE name IN ({placeholders(names)})", names)
    found = dict(rows)
    return [found.get(name, 0) for name in names]


def advance(name: str, holder: str, seen: int) -> int:
    """Take or renew a lease whose revision is `seen`. Returns the new revision, 0 if another process was faster."""
    if seen == 0:
        Lease.objects.bulk_create([Lease(name=name)], ignore_conflicts=True)
    is_advanced = execute(
        "UPDATE conductor_lease SET holder = %s, revision = revision + 1 WHERE name = %s AND revision = %s",
        [holder[:255], name, seen],
    )
    return seen + 1 if is_advanced else 0


def release(name: str, seen: int) -> None:
    """Release a lease whose revision is `seen`. The next holder need not wait until it is stale."""
    Lease.objects.filter(pk=name, revision=seen).update(holder="", revision=0)


def write_probe() -> None:
    """Write a row, which fails on a full disk and on a database that accepts reads only.

    Raises:
        DatabaseError: when the database is unreachable or refuses the write.
    """
    if not Lease.objects.filter(pk=PROBE).update(revision=F("revision") + 1):
        Lease.objects.bulk_create([Lease(name=PROBE)], ignore_conflicts=True)


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
        return read_revision(self._name)

    def beat(self, seen: int) -> int:
        return advance(self._name, f"{HOST}:{os.getpid()}", seen)

    def release(self, seen: int) -> None:
        release(self._name, seen)


def heartbeat(name: str) -> ProcessHeartbeat:
    """Return the heartbeat of this name, in the folder of the settings or in the database."""
    if conf.heartbeat_folder:
        return FileHeartbeat(Path(conf.heartbeat_folder) / name)
    return LeaseHeartbeat(name)


def read_heartbeats(*names: str) -> list[int]:
    """Return the numbers of several heartbeats, with at most one statement."""
    if conf.heartbeat_folder:
        return [heartbeat(name).read() for name in names]
    return read_revisions(names)
