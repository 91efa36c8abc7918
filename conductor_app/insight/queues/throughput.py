"""Throughput of queues and workers: counts per minute, rates and totals."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import BigIntegerField, F, Func, OuterRef, Subquery, Sum

from ...core.fingerprints import build_of
from ...models import MinuteCount, Poller
from ..durations import HOUR, MINUTE
from ..time_ranges import TimeRange

FIELDS = ("scheduled", "started", "done", "failed")
MINUTES = 60


@dataclass(slots=True)
class HourOfMinutes:
    """Counts per minute of one queue or worker over the last 60 minutes, current minute last."""

    minutes: dict[str, list[int]] = field(default_factory=lambda: {name: [0] * MINUTES for name in FIELDS})
    busy_ms: int = 0

    def total(self, name: str) -> int:
        return sum(self.minutes[name])

    def bars(self, name: str, width: int = 5) -> list[int]:
        """Return the counts of a chart, with `width` minutes per bar."""
        found = self.minutes[name]
        return [sum(found[at : at + width]) for at in range(0, MINUTES, width)]

    def rate(self, name: str, minutes: int = 5) -> float:
        """Return the rate per second over the last full minutes and the current one."""
        return sum(self.minutes[name][-minutes - 1 :]) / ((minutes + 0.5) * 60)

    @property
    def mean_ms(self) -> int | None:
        """Return the average duration of an attempt in milliseconds, or None if none ended."""
        ended = self.total("done") + self.total("failed")
        return self.busy_ms // ended if ended else None

    @property
    def failure_share(self) -> float | None:
        ended = self.total("done") + self.total("failed")
        return self.total("failed") / ended if ended else None


def last_hour(kind: str, names: Sequence[str] | None, now: int) -> dict[str, HourOfMinutes]:
    """Return the last hour of each name, or of all names if `names` is None."""
    first = now - now % MINUTE - HOUR + MINUTE
    rows = MinuteCount.objects.filter(kind=kind, at__gte=first)
    if names is not None:
        rows = rows.filter(name__in=names)
    hours: dict[str, HourOfMinutes] = defaultdict(HourOfMinutes)
    for name, at, busy, *counts in rows.order_by().values_list("name", "at", "busy_ms", *FIELDS):
        place = (at - first) // MINUTE
        if 0 <= place < MINUTES:
            hour = hours[name]
            hour.busy_ms += busy
            for column, count in zip(FIELDS, counts, strict=True):
                hour.minutes[column][place] += count
    return hours


def totals(kind: str, names: Sequence[str], now: int) -> dict[str, tuple[int, int, int]]:
    """Return done, failed and busy milliseconds of the last hour for each of these names that was active.

    The names are required, because the query would otherwise read every stored minute of the kind.
    """
    rows = MinuteCount.objects.filter(kind=kind, name__in=names, at__gt=now - HOUR).order_by().values_list("name")
    summed = rows.annotate(Sum("done"), Sum("failed"), Sum("busy_ms"))
    return {name: (done, failed, busy) for name, done, failed, busy in summed}


def counts_in_range(kind: str, name: str, time_range: TimeRange) -> tuple[dict[str, list[int]], int]:
    """Return the counts of each bar of a range by field, and the milliseconds that attempts took in the range."""
    rows = MinuteCount.objects.filter(kind=kind, name=name, at__gte=time_range.since, at__lt=time_range.until)
    template = f"(%(expressions)s - {time_range.since:d}) / {time_range.step:d}"
    bar = Func(F("at"), template=template, output_field=BigIntegerField())
    sums = [Sum(column, default=0) for column in FIELDS]
    counts, busy_ms = {column: [0] * time_range.count for column in FIELDS}, 0
    for place, *values, busy in (
        rows.order_by().annotate(bar=bar).values_list("bar").annotate(*sums, busy=Sum("busy_ms", default=0))
    ):
        busy_ms += busy
        for column, count in zip(FIELDS, values, strict=True):
            counts[column][place] = count
    return counts, busy_ms


def first_uses_of_builds(workers: Sequence[str]) -> dict[str, int]:
    """Return when each build of these workers appears first in the stored counts. One look-up per worker."""
    counted = MinuteCount.objects.filter(kind=MinuteCount.WORKER, name=OuterRef("worker")).order_by("at")
    found = Poller.objects.filter(worker__in=workers).order_by().annotate(since=Subquery(counted.values("at")[:1]))
    uses: dict[str, int] = {}
    for worker, since in found.values_list("worker", "since"):
        build = build_of(worker)
        if build and since is not None:
            uses[build] = min(uses.get(build, since), since)
    return uses
