"""When an alert rings: a condition on how many things of a view happen in a window."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

COUNT, SHARE, ABSENCE = KINDS = ("count", "share", "absence")
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Rule:
    """`threshold`: so many or more (count), so many percent or more (share), fewer than so many (absence).

    It rings again no sooner than after `repeat_ms`.
    """

    kind: str
    threshold: int
    window_ms: int
    repeat_ms: int

    def is_met(self, hits: int, total: int) -> bool:
        """Whether so many hits among so many runs ring it."""
        if self.kind == ABSENCE:
            return hits < self.threshold
        if self.kind == SHARE:
            return total > 0 and hits * 100 >= self.threshold * total
        return hits >= self.threshold

    def sentence(self, hits: int, total: int) -> str:
        """What was found, in words."""
        window = f"in the last {self.window_ms // MINUTE_MS} min"
        if self.kind == SHARE:
            return (
                f"{hits} of {total} runs {window}: {100 * hits // total if total else 0} %, {self.threshold} % ring it"
            )
        told = f"fewer than {self.threshold}" if self.kind == ABSENCE else f"{self.threshold} or more"
        return f"{hits} {window}: {told} ring it"


def would_ring(rule: Rule, hits: Sequence[int], total: Sequence[int], since: int, until: int) -> list[tuple[int, int]]:
    """When it would have rung, looked at once a minute, and how many hits there were; the moments are in order."""
    found: list[tuple[int, int]] = []
    for now in range(since, until + 1, MINUTE_MS):
        if found and now - found[-1][0] < rule.repeat_ms:
            continue
        count = _within(hits, now - rule.window_ms, now)
        if rule.is_met(count, _within(total, now - rule.window_ms, now)):
            found.append((now, count))
    return found


def _within(moments: Sequence[int], after: int, until: int) -> int:
    return bisect_right(moments, until) - bisect_left(moments, after + 1)
