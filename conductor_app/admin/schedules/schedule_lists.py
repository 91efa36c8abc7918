"""Lists of schedules and of their executed slots."""

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.informative_lines import informative_line
from ...insight.runs.recent_runs import recent_runs_of_schedules
from ...insight.runs.run_keys import run_keys
from ...insight.schedules.schedule_forecast import LATE_MS
from ...models import Schedule, ScheduleExecution
from ..badges import relative_time, render_badge, render_pill
from ..read_only import BoundedChangeList, ReadOnlyAdmin
from ..run_links import render_run_link
from ..runs.history_strip import history_strip
from .schedule_clocks import ScheduleClock, schedule_clocks
from .schedule_form import format_overlap
from .schedule_pages import CHANGE_PERMISSION, SchedulePages

MAX_CLOCKS = 3
"""The times of a schedule that the list shows."""
EXECUTION_STATUSES = {"EXECUTED": "COMPLETED", "POLLED": "PENDING", "FAILED": "FAILED"}


class ScheduleList(BoundedChangeList):
    """A page of schedules with the history strips of their runs."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list, now = list(self.result_list), clock.now()
        runs = recent_runs_of_schedules([row.name for row in self.result_list])
        for row in self.result_list:
            row.strip = history_strip(runs.get(row.name, []), now)


class ScheduleAdmin(SchedulePages, ReadOnlyAdmin):
    """Admin of schedules."""

    list_display = ("schedule", "workflow_name", "cron", "state", "next_run", "last", "history", "overlaps")
    list_display_links = None
    ordering = ("name",)
    search_fields = ("name", "workflow_name")
    search_help_text = gettext_lazy("Part of the name of a schedule or definition")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(CHANGE_PERMISSION)

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ScheduleList]:
        return ScheduleList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        slots = ScheduleExecution.objects.filter(schedule_name=OuterRef("name")).order_by("-slot_at")
        last = {
            "last_slot_at": Subquery(slots.values("slot_at")[:1]),
            "last_state": Subquery(slots.values("state")[:1]),
        }
        return super().get_queryset(request).annotate(**last)

    @admin.display(description=gettext_lazy("name"))
    def schedule(self, row: Schedule) -> SafeString:
        return format_html('<a href="{}/change/"><strong>{}</strong></a>', row.pk, row.name)

    @admin.display(description=gettext_lazy("times"))
    def cron(self, row: Schedule) -> SafeString:
        clocks = schedule_clocks(row.document)
        lines = format_html_join(mark_safe("<br>"), "{}", ((_render_clock(each),) for each in clocks[:MAX_CLOCKS]))
        return format_html("{}<br>…", lines) if len(clocks) > MAX_CLOCKS else lines

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: Schedule) -> SafeString:
        return render_badge("PAUSED") if row.is_paused else render_pill("succeeded", _("Active"))

    @admin.display(description=gettext_lazy("next run"))
    def next_run(self, row: Schedule) -> SafeString:
        if row.next_run_at is None or clock.now() - row.next_run_at < LATE_MS:
            return relative_time(row.next_run_at)
        return format_html("{} {}", relative_time(row.next_run_at), render_pill("failed", _("late"), "late"))

    @admin.display(description=gettext_lazy("last run"))
    def last(self, row: Schedule) -> SafeString:
        if row.last_slot_at is None:
            return relative_time(None)
        if row.last_state == "EXECUTED":
            return relative_time(row.last_slot_at)
        return format_html("{} {}", relative_time(row.last_slot_at), render_badge(EXECUTION_STATUSES[row.last_state]))

    @admin.display(description=gettext_lazy("last runs"))
    def history(self, row: Schedule) -> SafeString:
        return row.strip

    @admin.display(description=gettext_lazy("overlap policy"))
    def overlaps(self, row: Schedule) -> str:
        return format_overlap(row)


def _render_clock(clock: ScheduleClock) -> SafeString:
    words = clock.words
    text = capfirst(words) if words else format_html("<code>{}</code>", informative_line(clock.expression, 200))
    return format_html(
        '<span title="{}">{}</span> <span class="muted">{}</span>', clock.expression, text, clock.zone_id
    )


class ScheduleExecutionList(BoundedChangeList):
    """The list of executed slots, with the keys of their runs."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        keys = run_keys(row.run_id for row in self.result_list)
        for row in self.result_list:
            row.run_keys = keys


class ScheduleExecutionAdmin(ReadOnlyAdmin):
    """Executed slots and the runs that they started."""

    list_display = ("schedule_name", "slot", "state_badge", "run", "error")
    list_display_links = None
    ordering = ("-slot_at", "id")
    search_fields = ("=schedule_name",)
    search_help_text = gettext_lazy("Exact name of a schedule")

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ScheduleExecutionList]:
        return ScheduleExecutionList

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScheduleExecution]:
        return super().get_queryset(request).defer("request", "trace")

    @admin.display(description=gettext_lazy("slot"))
    def slot(self, row: ScheduleExecution) -> SafeString:
        return relative_time(row.slot_at)

    @admin.display(description=gettext_lazy("state"))
    def state_badge(self, row: ScheduleExecution) -> SafeString:
        return render_badge(EXECUTION_STATUSES.get(row.state, row.state))

    @admin.display(description=gettext_lazy("run"))
    def run(self, row: ScheduleExecution) -> SafeString | str:
        if not row.run_id:
            return ""
        return render_run_link(row.run_id, row.run_keys)

    @admin.display(description=gettext_lazy("reason"))
    def error(self, row: ScheduleExecution) -> str:
        return informative_line(row.reason, 160)
