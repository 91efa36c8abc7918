"""What is usual, as pages compare with it."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q
from django.utils.translation import gettext as _

from ..models import DurationBaseline, Run
from .durations import SECOND, format_duration

ENOUGH = 3
"""From so few, nothing is called usual yet."""


@dataclass(frozen=True, slots=True)
class TypicalDuration:
    """Half of them took no longer than `p50`, nearly all no longer than `p95`."""

    count: int
    p50: int
    p95: int

    @property
    def sentence(self) -> str:
        facts = {"from": format_duration(self.p50), "to": format_duration(self.p95), "count": self.count}
        return _("usually %(from)s to %(to)s (median and 95 %% of %(count)s)") % facts

    def is_slow(self, duration_ms: int) -> bool:
        """Whether something that took so long is worth a second look."""
        return duration_ms > self.p95 and duration_ms > self.p50 * 2 and duration_ms - self.p50 > SECOND


def typical_step_durations(name: str, version: int) -> dict[str, TypicalDuration]:
    """What is usual of a definition version, by the steps' references; the run itself has an empty one."""
    rows = DurationBaseline.objects.filter(name=name, version=version, count__gte=ENOUGH)
    return {row.ref: TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}


def typical_run_durations(runs: Iterable[Run]) -> dict[tuple[str, int], TypicalDuration]:
    """What is usual of the definitions of these runs, read together."""
    wanted = {(run.name, run.version) for run in runs}
    if not wanted:
        return {}
    found = Q()
    for name, version in wanted:
        found |= Q(name=name, version=version)
    rows = DurationBaseline.objects.filter(found, ref="", count__gte=ENOUGH)
    return {(row.name, row.version): TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}
