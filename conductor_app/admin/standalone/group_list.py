"""The list of task groups with their progress."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...insight.standalone.task_groups.progress import GroupProgress, groups_progress
from ...models import StandaloneTask, TaskGroup
from ..badges import format_count, relative_time, render_badge
from ..read_only import BoundedChangeList, ReadOnlyAdmin
from . import group_page
from .group_progress import progress_bar
from .page_addresses import group_address


class GroupList(BoundedChangeList):
    """A page of groups with their progress, which is counted for all of them together."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        counted = groups_progress(group.pk for group in self.result_list)
        for group in self.result_list:
            group.tally = counted.get(group.pk, GroupProgress())


class GroupStateFilter(admin.SimpleListFilter):
    """Filter by unresolved or sealed groups."""

    title, parameter_name = gettext_lazy("state"), "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, Any]]:
        return [("open", gettext_lazy("Unresolved")), ("sealed", gettext_lazy("Sealed"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() == "open":
            return queryset.filter(pk__in=StandaloneTask.objects.filter(ever_resolved=False).values("group_id"))
        return queryset.filter(sealed_at__isnull=False) if self.value() == "sealed" else queryset


class GroupAdmin(ReadOnlyAdmin):
    """Admin of task groups."""

    list_display = ("name", "progress", "states", "sealed", "created", "expires")
    list_display_links = None
    list_filter = (GroupStateFilter,)
    list_per_page = 40
    ordering = ("-created_at", "id")
    search_fields = ("pk",)
    search_help_text = gettext_lazy("Id of a group, or of one of its tasks")

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return GroupList

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip().replace("\0", "")
        if not term:
            return queryset, False
        of_task = StandaloneTask.objects.filter(pk=term).values_list("group_id", flat=True)
        return queryset.filter(pk__in=[term, *of_task]), False

    def get_urls(self) -> list[URLPattern]:
        def line(route: str, view: Any, name: str) -> URLPattern:
            return path(route, self.admin_site.admin_view(view), name=name)

        return [
            line("<path:group_id>/parts/", self.group_parts_fragment, "group_parts"),
            line("<path:group_id>/do/", self.action_view, "group_do"),
            *super().get_urls(),
        ]

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        return group_page.group_page(self.admin_site, request, object_id)

    def group_parts_fragment(self, request: HttpRequest, group_id: str) -> HttpResponse:
        """Return the parts of the page that refresh."""
        return group_page.group_fragment(request, group_id)

    def action_view(self, request: HttpRequest, group_id: str) -> HttpResponse:
        """Preview or execute an action on tasks of the group."""
        return group_page.handle_action(self.admin_site, request, group_id)

    @admin.display(description=gettext_lazy("group"))
    def name(self, group: TaskGroup) -> SafeString:
        scheduler = _("scheduler %(name)s") % {"name": group.scheduler_id} if group.scheduler_id != "-" else ""
        link = '<a href="{}"><code class="id">{}</code></a><br><span class="muted">{}</span>'
        return format_html(link, group_address(group.pk), group.pk, scheduler)

    @admin.display(description=gettext_lazy("resolved"))
    def progress(self, group: Any) -> SafeString:
        done = _("%(resolved)s of %(total)s") % {
            "resolved": format_count(group.tally.resolved),
            "total": format_count(group.tally.total),
        }
        return format_html('{}<span class="number">{}</span>', progress_bar(group.tally), done)

    @admin.display(description=gettext_lazy("tasks by state"))
    def states(self, group: Any) -> SafeString | str:
        if not group.tally.total:
            return _("no tasks")
        if not group.tally.parts:
            words = ngettext("%(count)s task", "%(count)s tasks", group.tally.total)
            return words % {"count": format_count(group.tally.total)}
        here = group_address(group.pk)
        parts = [(here, state, render_badge(state), format_count(count)) for state, count in group.tally.parts]
        return format_html_join(" ", '<a class="plain" href="{}?state={}">{}<b>{}</b></a>', parts)

    @admin.display(description=gettext_lazy("sealed"))
    def sealed(self, group: TaskGroup) -> SafeString | str:
        return (
            relative_time(group.sealed_at)
            if group.sealed_at
            else format_html('<span class="muted">{}</span>', _("Open"))
        )

    @admin.display(description=gettext_lazy("created"))
    def created(self, group: TaskGroup) -> SafeString:
        return relative_time(group.created_at)

    @admin.display(description=gettext_lazy("expires"))
    def expires(self, group: TaskGroup) -> SafeString:
        return relative_time(group.expires_at)
