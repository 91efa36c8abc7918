"""The chart of the attempts of a queue or a worker over time."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...insight.queues.throughput import counts_in_range
from ...insight.time_ranges import HOUR_RANGE, TimeRange
from ..charts import ChartMarker, ChartSeries, TrendChart, chosen_range, range_links

COUNT_LABELS = {
    "scheduled": gettext_lazy("Scheduled"),
    "started": gettext_lazy("Dispatched"),
    "done": gettext_lazy("Completed"),
    "failed": gettext_lazy("Failed"),
}


def throughput_chart(
    request: HttpRequest, kind: str, name: str, now: int, builds: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Return the chart of the attempts that ended, and the totals of the range.

    `builds`: when each build was used first. It becomes a marker.
    """
    chosen = chosen_range(request, HOUR_RANGE)
    time_range = TimeRange.aligned(chosen, now)
    counts, busy_ms = counts_in_range(kind, name, time_range)
    ended = sum(counts["done"]) + sum(counts["failed"])
    chart = TrendChart(
        _("Attempts"),
        time_range,
        [ChartSeries(str(COUNT_LABELS[field]), field, counts[field]) for field in ("done", "failed")],
        markers=build_markers(builds or {}),
        ranges=range_links(request, chosen),
    )
    return {
        "chart": chart,
        "totals": [(COUNT_LABELS[field], sum(counts[field])) for field in ("scheduled", "started")],
        "mean_ms": busy_ms // ended if ended else None,
    }


def build_markers(builds: Mapping[str, int]) -> Sequence[ChartMarker]:
    """Return the first use of each build, except for the oldest builds: what was used before them is not known."""
    oldest = min(builds.values(), default=0)
    return [ChartMarker(at, _("build %(build)s") % {"build": build}) for build, at in builds.items() if at > oldest]
