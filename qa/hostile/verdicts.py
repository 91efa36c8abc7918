"""What replies must not be, and the count of those that were."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from qa.hostile.connections import Reply
from qa.hostile.hostile_request import Request
from qa.hostile.objects import SECRET_VALUE

TRACES = (
    b"Traceback (most recent call last)", b"site-packages", b"/conductor_app/", b"sqlite3.", b"psycopg.",
    b"IntegrityError", b"OperationalError", b"pbkdf2_sha256$",
)  # fmt: skip
"""Words of a stack trace, of a database's error and of a stored password."""
MAY_READ_SECRETS = ("token ADMIN", "session root")
SHOWS_SECRETS = ("/api/secrets/", "/api/tasks/poll")


def violation_of(request: Request, reply: Reply, server_secrets: Sequence[bytes] = ()) -> str | None:
    """Return what is wrong with a reply."""
    if reply.status >= 500 and not _is_busy(reply) and not (reply.status == 501 and request.ends_connection):
        return f"status {reply.status}"
    if reply.status == 0 and not request.can_wait:
        return f"no reply within {reply.seconds:.0f} s"
    if reply.status == -1 and not request.ends_connection:
        return f"the connection was closed without a reply: {reply.body.decode(errors='replace')}"
    everything = reply.body + reply.headers.encode(errors="replace")
    for marker in (*TRACES, *server_secrets):
        if marker in everything and marker not in request.encoded:
            return f"the reply has {marker.decode()!r}"
    if SECRET_VALUE.encode() in everything and not (
        request.caller in MAY_READ_SECRETS and request.template.startswith(SHOWS_SECRETS)
    ):
        return "the reply has the value of a secret"
    if "\nX-Injected:" in f"\n{reply.headers}":
        return "the request has written a header of the reply"
    return None


def _is_busy(reply: Reply) -> bool:
    """A server that cannot act now says so, and when to try again."""
    return reply.status == 503 and "retry-after" in reply.headers.lower()


@dataclass
class Report:
    """Counts of replies by area and status, and the requests whose replies were wrong."""

    counts: dict[str, Counter[int]] = field(default_factory=dict)
    violations: dict[str, list[str]] = field(default_factory=dict)
    """By what is wrong and where, the requests with their replies."""
    slowest: list[tuple[float, str]] = field(default_factory=list)
    server_secrets: Sequence[bytes] = ()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, request: Request, reply: Reply) -> None:
        """Count a reply."""
        violation = violation_of(request, reply, self.server_secrets)
        with self._lock:
            self.counts.setdefault(request.area, Counter())[reply.status] += 1
            if violation:
                found = self.violations.setdefault(f"{violation}: {request.method} {request.template}", [])
                found.append(f"{request.describe()}\n→ {reply.status} {reply.body[:1000]!r}")
            if not request.can_wait:
                self.slowest = sorted([*self.slowest, (reply.seconds, f"{request.method} {request.template}")])[-5:]

    def table(self) -> str:
        """Return the counts as a table: a line for each status, a column for each area."""
        statuses = sorted({status for counter in self.counts.values() for status in counter})
        areas = sorted(self.counts)
        lines = ["".join(f"{word:>18}" for word in ("status", *areas, "all"))]
        for status in statuses:
            numbers = [self.counts[area][status] for area in areas]
            name = {0: "no reply", -1: "closed"}.get(status, str(status))
            lines.append("".join(f"{word:>18}" for word in (name, *numbers, sum(numbers))))
        totals = [self.counts[area].total() for area in areas]
        lines.append("".join(f"{word:>18}" for word in ("all", *totals, sum(totals))))
        return "\n".join(lines)
