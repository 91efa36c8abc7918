"""Schedules and what they came to: looked at here, changed through the API."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..insight.waits import first_line
from ..models import Schedule, ScheduleExecution
from .json_tree import tree
from .marks import ago, badge
from .read_only import ReadOnlyAdmin
from .run_page import address


class ScheduleAdmin(ReadOnlyAdmin):
    """What starts runs by the clock."""

    list_display = ("name", "workflow_name", "cron", "state", "next_run", "overlap")
    ordering = ("name",)
    search_fields = ("name", "workflow_name")
    search_help_text = "Part of the name of a schedule or of a definition"
    fields = ("name", "workflow_name", "state", "next_run", "paused_reason", "overlap", "definition_of_it",
              "created", "created_by", "updated", "updated_by")  # fmt: skip

    @admin.display(description="cron")
    def cron(self, row: Schedule) -> str:
        document = row.document
        entries = document.get("cronSchedules") or [document]
        shown = [f"{entry.get('cronExpression')} ({entry.get('zoneId') or 'UTC'})" for entry in entries]
        return first_line("; ".join(shown), 200)

    @admin.display(description="state")
    def state(self, row: Schedule) -> SafeString:
        return badge("PAUSED" if row.is_paused else "ACTIVE")

    @admin.display(description="next run")
    def next_run(self, row: Schedule) -> SafeString:
        return ago(row.next_run_at)

    @admin.display(description="schedule")
    def definition_of_it(self, row: Schedule) -> SafeString:
        return tree(row.document)

    @admin.display(description="created")
    def created(self, row: Schedule) -> SafeString:
        return ago(row.created_at)

    @admin.display(description="changed")
    def updated(self, row: Schedule) -> SafeString:
        return ago(row.updated_at)


class ScheduleExecutionAdmin(ReadOnlyAdmin):
    """Slots, and the runs that they started."""

    list_display = ("schedule_name", "slot", "word", "run", "trouble")
    list_display_links = None
    ordering = ("-slot_at", "id")
    search_fields = ("=schedule_name",)
    search_help_text = "The name of a schedule, exactly"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScheduleExecution]:
        return super().get_queryset(request).defer("request", "trace")

    @admin.display(description="slot")
    def slot(self, row: ScheduleExecution) -> SafeString:
        return ago(row.slot_at)

    @admin.display(description="state")
    def word(self, row: ScheduleExecution) -> SafeString:
        return badge({"EXECUTED": "COMPLETED", "POLLED": "PENDING"}.get(row.state, row.state))

    @admin.display(description="run")
    def run(self, row: ScheduleExecution) -> SafeString | str:
        if not row.run_id:
            return ""
        return format_html('<a href="{}"><code class="id">{}</code></a>', address(row.run_id), row.run_id)

    @admin.display(description="reason")
    def trouble(self, row: ScheduleExecution) -> str:
        return first_line(row.reason, 160)
