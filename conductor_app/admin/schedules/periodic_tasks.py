"""Celery's periodic tasks as its tables store them. Read-only: the server writes them from its own beat schedule."""

from django.contrib.admin import display
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from ...insight.durations import format_duration
from ..badges import format_count, relative_time, render_pill
from ..read_only import ReadOnlyAdmin


class PeriodicTaskAdmin(ReadOnlyAdmin):
    """Periodic tasks with their intervals."""

    list_display = ("name", "state", "interval_text", "last", "times", "job")
    list_select_related = ("interval", "crontab", "solar", "clocked")
    ordering = ("name",)
    search_fields = ("name", "task")
    search_help_text = gettext_lazy("Part of a name")

    @display(description=gettext_lazy("state"))
    def state(self, row: PeriodicTask) -> SafeString:
        return render_pill("succeeded", _("on")) if row.enabled else render_pill("paused", _("off"))

    @display(description=gettext_lazy("interval"))
    def interval_text(self, row: PeriodicTask) -> str:
        return format_interval(row)

    @display(description=gettext_lazy("last triggered"))
    def last(self, row: PeriodicTask) -> SafeString:
        return relative_time(row.last_run_at and round(row.last_run_at.timestamp() * 1000))

    @display(description=gettext_lazy("count"))
    def times(self, row: PeriodicTask) -> str:
        return format_count(row.total_run_count)

    @display(description=gettext_lazy("task"))
    def job(self, row: PeriodicTask) -> str:
        return row.task


def format_interval(row: PeriodicTask) -> str:
    """Return the interval of a periodic task as text."""
    return str(row.scheduler) if row.interval is None else _format_span(row.interval)


def _format_span(interval: IntervalSchedule) -> str:
    seconds = interval.schedule.run_every.total_seconds()
    return _("every %(span)s") % {"span": format_duration(round(seconds * 1000))}


class IntervalAdmin(ReadOnlyAdmin):
    """Schedules that are intervals."""

    list_display = ("interval_text",)

    @display(description=gettext_lazy("interval"))
    def interval_text(self, row: IntervalSchedule) -> str:
        return _format_span(row)


class CrontabAdmin(ReadOnlyAdmin):
    """Schedules that are crontab expressions."""

    list_display = ("__str__",)


SCHEDULES = {PeriodicTask: PeriodicTaskAdmin, IntervalSchedule: IntervalAdmin, CrontabSchedule: CrontabAdmin}
