"""Leases: which process is active in a role that only one process may have."""

from collections.abc import Sequence

from django.db import models
from django.db.models import F

from .statements import execute, fetch, placeholders


class Lease(models.Model):
    """The holder of a role. The holder increases the revision continuously; a constant revision means it is gone.

    The row contains no time, so a lease does not depend on the clocks of its hosts.
    """

    name = models.CharField(max_length=64, primary_key=True)
    holder = models.CharField(max_length=255, default="", blank=True)
    revision = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


PROBE = "write probe"
"""The row that health checks write."""


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
