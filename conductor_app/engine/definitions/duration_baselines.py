"""Update of the duration baselines of definition versions whose runs completed since the last pass."""

from django.db.models import Max

from ... import clock
from ...models import DurationBaseline
from ...store import duration_baselines

AT_FIRST_MS = 7 * 86_400_000
"""The period that the first pass covers."""


def update_duration_baselines(limit: int) -> int:
    """Measure up to `limit` definition versions whose runs completed since the last pass. Returns how many."""
    now = clock.now()
    last = DurationBaseline.objects.aggregate(at=Max("measured_at"))["at"]
    changed = duration_baselines.versions_ended_since(last if last is not None else now - AT_FIRST_MS, limit)
    return sum(duration_baselines.measure_version(name, version, now) > 0 for name, version in changed)
