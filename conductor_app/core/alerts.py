"""When an alert rings: a condition on how many things of a view happen in a window, outside of its quiet hours."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

COUNT, SHARE, ABSENCE, AGE = ALERT_KINDS = ("count", "share", "absence", "age")
MINUTE_MS = 60_000
DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The minutes of a day in which nothing rings, by the clocks of a zone; they may go over midnight."""

    begins: int
    ends: int
    zone: str = "UTC"

    def contains(self, now: int) -> bool:
        """Whether it is quiet at a moment."""
        there = datetime.fromtimestamp(now / 1000, ZoneInfo(self.zone))
        minute = there.hour * 60 + there.minute
        if self.begins <= self.ends:
            return self.begins <= minute < self.ends
        return minute >= self.begins or minute < self.ends


@dataclass(frozen=True, slots=True)
class AlertRule:
    """`threshold`: so many or more (count), so many percent or more (share), fewer than so many (absence), one that has
    been open for so many minutes or longer (age).

    It rings again no sooner than after `repeat_ms`, and what is met in quiet hours rings after them if it still is.
    """

    kind: str
    threshold: int
    window_ms: int
    repeat_ms: int
    quiet: QuietHours | None = None

    @property
    def age_ms(self) -> int:
        """For how long a run has to be open to be too old."""
        return self.threshold * MINUTE_MS

    def is_quiet(self, now: int) -> bool:
        """Whether nothing rings now."""
        return self.quiet is not None and self.quiet.contains(now)

    def is_met(self, hits: int, total: int) -> bool:
        """Whether so many hits among so many runs ring it."""
        if self.kind == ABSENCE:
            return hits < self.threshold
        if self.kind == SHARE:
            return total > 0 and hits * 100 >= self.threshold * total
        return hits >= (1 if self.kind == AGE else self.threshold)

    def sentence(self, hits: int, total: int) -> str:
        """What was found, in words."""
        if self.kind == AGE:
            return f"{hits} open for {self.threshold} min or longer"
        window = f"in the last {self.window_ms // MINUTE_MS} min"
        if self.kind == SHARE:
            return (
                f"{hits} of {total} runs {window}: {100 * hits // total if total else 0} %, {self.threshold} % ring it"
            )
        told = f"fewer than {self.threshold}" if self.kind == ABSENCE else f"{self.threshold} or more"
        return f"{hits} {window}: {told} ring it"


def find_alert_times(
    rule: AlertRule, hits: Sequence[int], total: Sequence[int], since: int, until: int
) -> list[tuple[int, int]]:
    """When it would have rung, looked at once a minute, and how many hits there were; the moments are in order.

    Of an age, `hits` are the moments at which runs became too old, and `total` those at which they ended after that.
    """
    found: list[tuple[int, int]] = []
    for now in range(since, until + 1, MINUTE_MS):
        if (found and now - found[-1][0] < rule.repeat_ms) or rule.is_quiet(now):
            continue
        if rule.kind == AGE:
            count = bisect_right(hits, now) - bisect_right(total, now)
        else:
            count = _count_within(hits, now - rule.window_ms, now)
        if rule.is_met(count, _count_within(total, now - rule.window_ms, now)):
            found.append((now, count))
    return found


def _count_within(moments: Sequence[int], after: int, until: int) -> int:
    return bisect_right(moments, until) - bisect_left(moments, after + 1)
