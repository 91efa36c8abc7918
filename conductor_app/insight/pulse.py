"""The pulse: what the last hour brought, beside the same hour a week ago; and what is open for longer than usual."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from ..models import Run, UsualDuration
from .spans import DAY, HOUR
from .usual import ENOUGH, Usual

MOST_COUNTED = 10_000
MOST_DEFINITIONS, MOST_RUNS = 40, 8


@dataclass(frozen=True, slots=True)
class Beat:
    """A count of the last hour and of the same hour a week ago; `is_bad`: more of it is worse."""

    word: str
    now: int
    then: int
    asked: dict[str, str]
    is_bad: bool = False

    @property
    def change(self) -> str:
        """How it compares, in words."""
        if self.now == self.then:
            return "as a week ago"
        if not self.then:
            return "none a week ago"
        return f"{100 * (self.now - self.then) / self.then:+.0f} % against a week ago"

    @property
    def is_worse(self) -> bool:
        """Whether somebody should look."""
        return self.is_bad and self.now > max(2 * self.then, 3)


def beats(now: int) -> list[Beat]:
    """Started, ended well, failed: six counts, each over an index and up to a bound."""
    since, before = now - HOUR, now - 7 * DAY
    ended = {"ended_since": str(since)}
    return [
        Beat("started", _begun(since, now), _begun(before - HOUR, before), {"started_since": str(since)}),
        Beat("completed", _ended(since, now, "COMPLETED"), _ended(before - HOUR, before, "COMPLETED"),
             {"status": "COMPLETED", **ended}),
        Beat("failed", _ended(since, now, "FAILED"), _ended(before - HOUR, before, "FAILED"),
             {"status": "FAILED", **ended}, is_bad=True),
    ]  # fmt: skip


def _begun(since: int, until: int) -> int:
    return _counted(Run.objects.filter(created_at__gt=since, created_at__lte=until))


def _ended(since: int, until: int, status: str) -> int:
    """Of the runs that ended then, as many as are looked at."""
    newest = Run.objects.filter(ended_at__gt=since, ended_at__lte=until).order_by("-ended_at")[:MOST_COUNTED]
    return Run.objects.filter(pk__in=newest.values("pk"), status=status).count()


def _counted(runs: QuerySet[Run]) -> int:
    return runs.order_by().values("pk")[:MOST_COUNTED].count()


def late(now: int) -> list[tuple[Run, Usual]]:
    """Open runs that have gone on for much longer than their like, the oldest first; two queries."""
    rows = UsualDuration.objects.filter(ref="", count__gte=ENOUGH).order_by("-measured_at")[:MOST_DEFINITIONS]
    usual = {(row.name, row.version): Usual(row.count, row.p50_ms, row.p95_ms) for row in rows}
    if not usual:
        return []
    overdue = Q()
    for (name, version), each in usual.items():
        overdue |= Q(name=name, version=version, created_at__lt=now - max(2 * each.p95, each.p95 + 60_000))
    found = Run.objects.light().defer("domains").filter(overdue, status="RUNNING").order_by("created_at")[:MOST_RUNS]
    return [(run, usual[run.name, run.version]) for run in found]
