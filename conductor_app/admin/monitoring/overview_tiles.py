"""Activity tiles of the overview: last hour and last day compared with one week ago, slow definitions, oldest tasks."""

from functools import cache
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...insight.definitions.slowest import SlowDefinition, slowest_definitions
from ...insight.durations import HOUR, format_decimal, format_duration
from ...insight.monitoring.hourly_activity import ActivityLine, HourlyActivity, hourly_activity
from ...insight.monitoring.overview_metrics import overdue_runs, overview_metrics
from ...insight.queues.queue_states import list_queues
from ..badges import exact_time, format_count
from ..charts import comparison_bars
from ..pages import Page
from ..queues.queue_list import queue_address
from ..runs.run_page import run_address
from ..tiles import build_tile

MAX_QUEUES = 8
ACTIVITY_KINDS = {
    "started": (gettext_lazy("Started"), "started", {}, "active"),
    "finished": (gettext_lazy("Finished"), "ended", {}, "succeeded"),
    "failed": (gettext_lazy("Failed"), "ended", {"status": "FAILED"}, "failed"),
}
"""The lines of the activity: label, the timestamp of a run that it counts, the filter that lists these runs, color."""


class OverviewActivityPage(Page):
    """Fragment of the overview that loads after the page. Each of its tiles may fail without affecting the others."""

    name, permission, template = "pulse", "conductor.view_run", "ops/overview/tile_columns_page.html"
    title = gettext_lazy("Activity")
    live_template = "ops/overview/tile_columns.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now = clock.now()
        of_the_day = cache(lambda: hourly_activity(now))
        return {
            "columns": [
                [
                    build_tile(
                        _("Last 24 hours"), "ops/overview/last_day.html", lambda: _last_day_context(of_the_day())
                    ),
                    build_tile(
                        _("Slow workflows"), "ops/overview/slow_workflows.html", lambda: _slow_definitions_context(now)
                    ),
                ],
                [
                    build_tile(
                        _("Last hour"), "ops/overview/last_hour.html", lambda: _last_hour_context(of_the_day(), now)
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


def _last_hour_context(found: HourlyActivity, now: int) -> dict[str, Any]:
    return {
        "beats": [(beat, filtered_runs_address(**beat.asked)) for beat in overview_metrics(found, now)],
        "late": [{"run": run, "usual": usual, "address": run_address(run.pk)} for run, usual in overdue_runs(now)],
    }


def _last_day_context(found: HourlyActivity) -> dict[str, Any]:
    lines = [_activity_line(line, found.since) for line in found.lines if line.kind in ACTIVITY_KINDS]
    return {"is_silent": found.is_silent, "lines": lines}


def _activity_line(line: ActivityLine, since: int) -> dict[str, Any]:
    label, moment, filters, tone = ACTIVITY_KINDS[line.kind]
    hours = [
        (
            _hour_text(begin, now, week_ago),
            filtered_runs_address(**_time_filter(moment, begin, begin + HOUR), **filters),
            now,
            week_ago,
        )
        for place, (now, week_ago) in enumerate(zip(line.now, line.week_ago, strict=True))
        for begin in [since + place * HOUR]
    ]
    return {
        "word": label,
        "total": line.total,
        "before": line.before,
        "address": filtered_runs_address(**{f"{moment}_since": str(since)}, **filters),
        "chart": _activity_chart(str(label), hours, tone),
    }


def _activity_chart(label: str, hours: list[tuple[str, str, int, int]], tone: str) -> SafeString:
    title = _("%(label)s per hour; gray = same hour last week") % {"label": label}
    return comparison_bars(hours, title, tone)


def _time_filter(moment: str, since: int, before: int) -> dict[str, str]:
    return {f"{moment}_since": str(since), f"{moment}_before": str(before)}


def _hour_text(begin: int, now: int, week_ago: int) -> str:
    facts = {"time": exact_time(begin), "now": format_count(now), "then": format_count(week_ago)}
    return _("Hour from %(time)s: %(now)s, last week %(then)s") % facts


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
