"""Typical durations of runs and steps, for comparison on the pages."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q
from django.utils.translation import gettext as _

from ...models import DurationBaseline, Run
from ..durations import SECOND, format_duration

ENOUGH = 3
"""Minimum number of samples for a baseline."""


@dataclass(frozen=True, slots=True)
class TypicalDuration:
    """Median and 95th percentile of a duration, in milliseconds."""

    count: int
    p50: int
    p95: int

    def __str__(self) -> str:
        return f"p50 {format_duration(self.p50)} · p95 {format_duration(self.p95)}"

    @property
    def sentence(self) -> str:
        facts = {"durations": self, "count": self.count}
        return _("typical duration: %(durations)s (%(count)s samples)") % facts

    def is_slow(self, duration_ms: int) -> bool:
        """Return True if a duration is well above the baseline."""
        return duration_ms > self.p95 and duration_ms > self.p50 * 2 and duration_ms - self.p50 > SECOND


def typical_step_durations(name: str, version: int) -> dict[str, TypicalDuration]:
    """Return the typical durations of a definition version, by step reference. The run itself has the reference ''."""
    rows = DurationBaseline.objects.filter(name=name, version=version, count__gte=ENOUGH)
    return {row.ref: TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}


def typical_run_durations(runs: Iterable[Run]) -> dict[tuple[str, int], TypicalDuration]:
    """Return the typical run durations for the definitions of these runs. Runs one query."""
    wanted = {(run.name, run.version) for run in runs}
    if not wanted:
        return {}
    found = Q()
    for name, version in wanted:
        found |= Q(name=name, version=version)
    rows = DurationBaseline.objects.filter(found, ref="", count__gte=ENOUGH)
    return {(row.name, row.version): TypicalDuration(row.count, row.p50_ms, row.p95_ms) for row in rows}
