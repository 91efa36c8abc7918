"""What is usual is measured in passing: of the definitions of which runs have ended since the last look."""

from django.db.models import Max

from .. import clock
from ..models import DurationBaseline
from ..store import duration_baselines

AT_FIRST_MS = 7 * 86_400_000
"""How far back the first look goes."""


def update_duration_baselines(limit: int) -> int:
    """Measure the definition versions of which a run has ended well since the last pass."""
    now = clock.now()
    last = DurationBaseline.objects.aggregate(at=Max("measured_at"))["at"]
    changed = duration_baselines.versions_ended_since(last if last is not None else now - AT_FIRST_MS, limit)
    return sum(duration_baselines.measure_version(name, version, now) > 0 for name, version in changed)
