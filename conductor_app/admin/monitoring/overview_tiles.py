"""Activity tiles of the overview: runs over time compared with a week ago, slow definitions, oldest tasks."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...insight.definitions.slowest import SlowDefinition, slowest_definitions
from ...insight.durations import HOUR, format_duration
from ...insight.monitoring.overview_metrics import overdue_runs, overview_metrics
from ...insight.monitoring.run_activity import WEEK, ActivityLine, RunActivity, run_activity
from ...insight.numbers import format_decimal
from ...insight.queues.queue_states import list_queues
from ...insight.time_ranges import TimeRange
from ..badges import format_count
from ..charts import LOW_PLOT_HEIGHT, ChartSeries, TrendChart, chosen_range, range_links
from ..pages import Page
from ..queues.queue_list import queue_address
from ..runs.run_page import run_address
from ..tiles import build_tile

MAX_QUEUES = 8
ACTIVITY_KINDS = {
    "started": (gettext_lazy("Started"), "started", {}, "started"),
    "finished": (gettext_lazy("Finished"), "ended", {}, "succeeded"),
    "failed": (gettext_lazy("Failed"), "ended", {"status": "FAILED"}, "failed"),
}
"""The lines of the activity: label, the timestamp of a run that it counts, the filter that lists these runs, color."""


class OverviewActivityPage(Page):
    """Fragment of the overview that loads after the page. Each of its tiles may fail without affecting the others."""

    name, permission, template = "overview_activity", "conductor.view_run", "ops/overview/tile_columns_page.html"
    title = gettext_lazy("Activity")
    live_template = "ops/overview/tile_columns.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        chosen = chosen_range(request)
        return {
            "columns": [
                [
                    build_tile(
                        _("Activity"),
                        "ops/overview/activity.html",
                        lambda: _activity_context(
                            run_activity(TimeRange.aligned(chosen, now)), range_links(request, chosen)
                        ),
                    ),
                    build_tile(
                        _("Slow workflows"), "ops/overview/slow_workflows.html", lambda: _slow_definitions_context(now)
                    ),
                ],
                [
                    build_tile(
                        _("Last hour"),
                        "ops/overview/last_hour.html",
                        lambda: _last_hour_context(now),
                    ),
                    build_tile(
                        _("Oldest queued tasks"),
                        "ops/overview/oldest_tasks.html",
                        lambda: {"rows": _oldest_queue_rows(now)},
                    ),
                ],
            ]
        }


def filtered_runs_address(**filters: str) -> str:
    """Return the address of the list of runs with these filters."""
    return reverse("admin:conductor_run_changelist", query=filters)


def _last_hour_context(now: int) -> dict[str, Any]:
    return {
        "beats": [(beat, filtered_runs_address(**beat.asked)) for beat in overview_metrics(now)],
        "late": [{"run": run, "usual": usual, "address": run_address(run.pk)} for run, usual in overdue_runs(now)],
    }


def _activity_context(activity: RunActivity, ranges: list[dict[str, Any]]) -> dict[str, Any]:
    lines = [_activity_line(line, activity) for line in activity.lines if line.kind in ACTIVITY_KINDS]
    return {"is_silent": activity.is_silent, "lines": lines, "ranges": ranges, "is_cut": activity.is_cut}


def _activity_line(line: ActivityLine, activity: RunActivity) -> dict[str, Any]:
    label, moment, filters, tone = ACTIVITY_KINDS[line.kind]
    time_range = activity.time_range
    links = [
        filtered_runs_address(**_time_filter(moment, begin, begin + time_range.step), **filters)
        for begin in time_range.starts()
    ]
    chart = TrendChart(
        str(label),
        time_range,
        [ChartSeries(str(label), tone, line.now)],
        before=ChartSeries(_format_shift(activity.shift_ms), "before", line.earlier),
        links=links,
        plot_height=LOW_PLOT_HEIGHT,
    )
    address = filtered_runs_address(**{f"{moment}_since": str(time_range.since)}, **filters)
    return {"chart": chart, "address": address}


def _format_shift(shift_ms: int) -> str:
    return _("a week earlier") if shift_ms == WEEK else _("30 days earlier")


def _time_filter(moment: str, since: int, before: int) -> dict[str, str]:
    return {f"{moment}_since": str(since), f"{moment}_before": str(before)}


def _slow_definitions_context(now: int) -> dict[str, Any]:
    return {"rows": [_slow_definition_row(each, now) for each in slowest_definitions(now)]}


def _slow_definition_row(each: SlowDefinition, now: int) -> dict[str, Any]:
    filters = {"name": each.name, "version": str(each.version), "status": "COMPLETED"}
    return {
        "slow": each,
        "address": filtered_runs_address(**filters, ended_since=str(now - HOUR)),
        "factor": format_decimal(each.factor) if each.factor < 10 else format_count(round(each.factor)),
    }


def _oldest_queue_rows(now: int) -> list[dict[str, Any]]:
    waiting = [queue for queue in list_queues() if queue.oldest_at is not None]
    return [
        {"queue": queue, "address": queue_address(queue.name), "age": format_duration(now - (queue.oldest_at or now))}
        for queue in waiting[:MAX_QUEUES]
    ]
