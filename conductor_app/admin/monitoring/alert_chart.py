"""Chart of an alert's last seven days: the measured values, the threshold, and when the alert would have fired."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...core.alerts import ABSENCE, BUDGET, SHARE
from ...insight.durations import HOUR
from ...insight.failures.alerts import BackTest
from ...insight.time_ranges import TimeRange
from ..charts import ChartSeries, ChartThreshold, TrendChart

STEP = 2 * HOUR


def back_test_chart(tested: BackTest, kind: str) -> TrendChart:
    """Return the chart of a back-test. A bar has the value of its time that is the closest to firing."""
    time_range = TimeRange("", tested.begin, STEP, -(-(tested.end - tested.begin) // STEP))
    unit = " %" if kind in (SHARE, BUDGET) else ""
    values: dict[int, list[float]] = {}
    for at, value in tested.points:
        values.setdefault(_place(at, time_range), []).append(value)
    extreme = min if kind == ABSENCE else max
    measured = [round(extreme(values.get(place, [0]))) for place in range(time_range.count)]
    fired = {_place(at, time_range) for at, _hits in tested.firings}
    sentence = ngettext(
        "In the last seven days it would have fired %(n)s time",
        "In the last seven days it would have fired %(n)s times",
        len(tested.firings),
    )
    return TrendChart(
        label=sentence % {"n": len(tested.firings)},
        time_range=time_range,
        series=(
            ChartSeries(
                _("Measured value") + unit, "started", [0 if n in fired else v for n, v in enumerate(measured)]
            ),
            ChartSeries(
                _("Would have fired") + unit, "failed", [v if n in fired else 0 for n, v in enumerate(measured)]
            ),
        ),
        threshold=ChartThreshold(tested.limit, _("Threshold %(limit)s") % {"limit": f"{tested.limit}{unit}"}),
        has_totals=False,
    )


def _place(moment: int, time_range: TimeRange) -> int:
    """Return the bar of a time. The end of the range belongs to the last bar."""
    return min((moment - time_range.since) // time_range.step, time_range.count - 1)
