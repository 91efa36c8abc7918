"""Rules that decide when an alert fires: a number of hits in a window, outside its quiet hours."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .cron.zones import parse_zone

COUNT, SHARE, ABSENCE, AGE, BUDGET = ALERT_KINDS = ("count", "share", "absence", "age", "budget")
SPENT_PERCENT = 80
"""The default threshold of an alert on budgets."""
MINUTE_MS = 60_000
DAY_MINUTES = 24 * 60
MAX_MINUTES = 7 * DAY_MINUTES


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Daily period in which no alert fires, in minutes after midnight of a time zone. It may span midnight."""

    begins: int
    ends: int
    zone: str = "UTC"

    def contains(self, now: int) -> bool:
        """Return True if `now` (milliseconds) is in the quiet hours."""
        there = datetime.fromtimestamp(now / 1000, parse_zone(self.zone))
        minute = there.hour * 60 + there.minute
        if self.begins <= self.ends:
            return self.begins <= minute < self.ends
        return minute >= self.begins or minute < self.ends


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Condition on the runs of a view, or on budgets of AI steps.

    `threshold`: minimum number of hits (count), minimum percentage of hits (share), number of hits that must be reached
    (absence), minimum age of an open run in minutes (age), or minimum percentage of a budget that is spent (budget).
    An alert repeats at the earliest after `repeat_ms`. A condition met in quiet hours fires after them if it still
    holds.
    """

    kind: str
    threshold: int
    window_ms: int
    repeat_ms: int
    quiet: QuietHours | None = None

    @property
    def age_ms(self) -> int:
        """Minimum age of an open run, in milliseconds, for rules of kind `age`."""
        return self.threshold * MINUTE_MS

    def is_quiet(self, now: int) -> bool:
        """Return True if `now` is in the quiet hours."""
        return self.quiet is not None and self.quiet.contains(now)

    def is_met(self, hits: int, total: int) -> bool:
        """Return True if `hits` among `total` runs meet the condition. Of budgets, `hits` is the spent percentage."""
        if self.kind == ABSENCE:
            return hits < self.threshold
        if self.kind == SHARE:
            return total > 0 and hits * 100 >= self.threshold * total
        return hits >= self.limit

    @property
    def limit(self) -> int:
        """Return the threshold in the unit of the measured value: for the kind `age`, one run."""
        return 1 if self.kind == AGE else self.threshold

    def sentence(self, hits: int, total: int) -> str:
        """Describe the measured values and the threshold."""
        if self.kind == AGE:
            return f"{hits} open for {self.threshold} min or longer"
        window = f"in the last {self.window_ms // MINUTE_MS} min"
        if self.kind == SHARE:
            percentage = 100 * hits // total if total else 0
            return f"{hits} of {total} runs {window}: {percentage} % (threshold: {self.threshold} %)"
        limit = f"fewer than {self.threshold}" if self.kind == ABSENCE else f"{self.threshold} or more"
        return f"{hits} {window} (threshold: {limit})"


def find_rule_problem(kind: str, threshold: int, window: int, repeat: int) -> str:
    """Return why these values are no condition of an alert, or an empty text. `window` and `repeat` are in minutes."""
    if kind not in ALERT_KINDS:
        return f"Unknown kind of alert {kind!r}. Use one of: {', '.join(ALERT_KINDS)}."
    most = 100 if kind in (SHARE, BUDGET) else 10**6
    if not 1 <= threshold <= most:
        return f"The threshold must be 1 to {most:,} (got {threshold})."
    if not (1 <= window <= MAX_MINUTES and 1 <= repeat <= MAX_MINUTES):
        return f"The window and the pause must be 1 to {MAX_MINUTES} minutes (got {window} and {repeat})."
    return ""


def measure_at(rule: AlertRule, hits: Sequence[int], total: Sequence[int], moments: Sequence[int]) -> list[float]:
    """Return the value that the rule compares with its threshold at each time: a number of runs, or a percentage.

    `hits` and `total` are those of `find_alert_times`.
    """
    return [_value_at(rule, hits, total, now) for now in moments]


def _value_at(rule: AlertRule, hits: Sequence[int], total: Sequence[int], now: int) -> float:
    if rule.kind == AGE:
        return bisect_right(hits, now) - bisect_right(total, now)
    count = _count_within(hits, now - rule.window_ms, now)
    if rule.kind != SHARE:
        return count
    every = _count_within(total, now - rule.window_ms, now)
    return 100 * count / every if every else 0


def find_alert_times(
    rule: AlertRule, hits: Sequence[int], total: Sequence[int], since: int, until: int
) -> list[tuple[int, int]]:
    """Return each time at which the rule would have fired, checked once a minute, with the number of hits.

    For rules of kind `age`, `hits` are the times at which runs became too old, and `total` the times at which those
    runs ended.
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
