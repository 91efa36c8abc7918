"""How much goes through queues and workers: minutes as bars, rates, and who holds what."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Sum

from ..models import MinuteCount
from .durations import HOUR, MINUTE

FIELDS = ("scheduled", "started", "done", "failed")
MINUTES = 60


@dataclass(slots=True)
class HourOfMinutes:
    """The last 60 minutes of one queue or worker, a number for each minute; the running one is the last."""

    minutes: dict[str, list[int]] = field(default_factory=lambda: {name: [0] * MINUTES for name in FIELDS})
    busy_ms: int = 0

    def total(self, name: str) -> int:
        return sum(self.minutes[name])

    def bars(self, name: str, width: int = 5) -> list[int]:
        """The minutes, so many in one bar."""
        found = self.minutes[name]
        return [sum(found[at : at + width]) for at in range(0, MINUTES, width)]

    def rate(self, name: str, minutes: int = 5) -> float:
        """A second, over the last full minutes and the running one."""
        return sum(self.minutes[name][-minutes - 1 :]) / ((minutes + 0.5) * 60)

    @property
    def mean_ms(self) -> int | None:
        """How long the work of one attempt took."""
        ended = self.total("done") + self.total("failed")
        return self.busy_ms // ended if ended else None

    @property
    def failure_share(self) -> float | None:
        ended = self.total("done") + self.total("failed")
        return self.total("failed") / ended if ended else None


def last_hour(kind: str, names: Sequence[str] | None, now: int) -> dict[str, HourOfMinutes]:
    """The last hour of each name; of all names that there are, if None is given."""
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
    """For each of these names that did anything in the last hour: done, failed, and the milliseconds that it took.

    Without the names, every minute of the kind that is kept would be read.
    """
    rows = MinuteCount.objects.filter(kind=kind, name__in=names, at__gt=now - HOUR).order_by().values_list("name")
    summed = rows.annotate(Sum("done"), Sum("failed"), Sum("busy_ms"))
    return {name: (done, failed, busy) for name, done, failed, busy in summed}
