"""The list of standalone tasks: search by id, group or queue, and filter by state."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.states import TASK
from ...insight.standalone.task_status import NAMES_OF_PRIORITIES
from ...models import Attempt, StandaloneTask
from ..badges import relative_time, render_badge
from ..queues.queue_list import queue_address
from ..read_only import ReadOnlyAdmin
from . import task_page
from .page_addresses import standalone_task_address


class TaskStateFilter(admin.SimpleListFilter):
    """Filter by state."""

    title, parameter_name = gettext_lazy("state"), "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return [
            ("open", gettext_lazy("Open")),
            ("blocked", gettext_lazy("Unscheduled")),
            ("over", gettext_lazy("Resolved")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        statuses = {"open": sorted(TASK.open), "blocked": ["BLOCKED"], "over": sorted(TASK.final)}.get(
            self.value() or ""
        )
        return queryset.filter(task__status__in=statuses) if statuses else queryset


class StandaloneTaskAdmin(ReadOnlyAdmin):
    """Admin of standalone tasks."""

    list_display = ("state", "name", "queue_link", "priority_name", "created", "deadline")
    list_display_links = None
    list_filter = (TaskStateFilter,)
    list_select_related = ("task",)
    # New tasks usually expire last, and this order has an index.
    ordering = ("-expires_at",)
    search_fields = ("pk",)
    search_help_text = gettext_lazy("Id of a task or of its group, or the name of a queue")

    def get_queryset(self, request: HttpRequest) -> QuerySet[StandaloneTask]:
        return StandaloneTask.objects.defer_payloads()

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip().replace("\0", "")
        if not term:
            return queryset, False
        if "/" in term:
            return queryset.filter(task__attempts__in=_open_attempts(term)).distinct(), False
        return queryset.filter(pk=term) | queryset.filter(group_id=term), False

    def get_urls(self) -> list[URLPattern]:
        def line(route: str, view: Any, name: str) -> URLPattern:
            return path(route, self.admin_site.admin_view(view), name=name)

        return [
            line("<path:task_id>/parts/", task_page.task_fragment, "standalone_parts"),
            line("<path:task_id>/log/", task_page.log_fragment, "standalone_log"),
            line("<path:task_id>/file/", task_page.artifact_redirect, "standalone_file"),
            *super().get_urls(),
        ]

    def change_view(self, request: HttpRequest, object_id: str, *args: object, **kwargs: object) -> HttpResponse:
        return task_page.task_page(self.admin_site, request, object_id)

    @admin.display(description=gettext_lazy("status"))
    def state(self, standalone: StandaloneTask) -> SafeString:
        return render_badge(standalone.task.status)

    @admin.display(description=gettext_lazy("task"))
    def name(self, standalone: StandaloneTask) -> SafeString:
        link = '<a href="{}"><strong>{}</strong></a><br><code class="id">{}</code>'
        return format_html(
            link, standalone_task_address(standalone.pk), standalone.task.name or _("unnamed"), standalone.pk
        )

    @admin.display(description=gettext_lazy("queue"))
    def queue_link(self, standalone: StandaloneTask) -> SafeString:
        return format_html('<a href="{}">{}</a>', queue_address(standalone.queue), standalone.queue)

    @admin.display(description=gettext_lazy("priority"))
    def priority_name(self, standalone: StandaloneTask) -> str:
        return NAMES_OF_PRIORITIES[standalone.priority]

    @admin.display(description=gettext_lazy("created"))
    def created(self, standalone: StandaloneTask) -> SafeString:
        return relative_time(standalone.task.created_at)

    @admin.display(description=gettext_lazy("deadline"))
    def deadline(self, standalone: StandaloneTask) -> SafeString:
        return relative_time(standalone.deadline_at)


def _open_attempts(queue: str) -> QuerySet:
    return Attempt.objects.open().filter(queue=queue, run__isnull=True)
