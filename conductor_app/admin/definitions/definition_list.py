"""The list of workflow definitions: newest versions, usage, failure rates and warnings."""

from collections.abc import Mapping

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...insight.definitions.definition_usage import newest_definitions
from ...insight.definitions.task_catalog import catalog_tasks
from ...insight.definitions.workflow_catalog import CatalogWorkflow, catalog_workflows
from ...insight.durations import format_duration
from ...insight.runs.recent_runs import recent_runs_of_workflows
from ...models import WorkflowDefinition
from ..badges import format_count, render_pill
from ..read_only import BoundedChangeList
from ..runs.history_strip import history_strip

FLAG_TONES = {"broken reference": "failed", "no timeout": "waiting", "no worker": "waiting", "unused": "stopped"}
FLAG_LABELS = {
    "broken reference": gettext_lazy("broken reference"),
    "no timeout": gettext_lazy("no timeout"),
    "no worker": gettext_lazy("no worker"),
    "unused": gettext_lazy("unused"),
}
FLAG_ICONS = {"broken reference": "failed", "unused": "skipped"}


class CatalogList(BoundedChangeList):
    """A page of workflow definitions with their catalog entries, which are loaded together."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        now = clock.now()
        found = catalog_workflows(self.result_list, now)
        runs = recent_runs_of_workflows([row.name for row in self.result_list])
        for row in self.result_list:
            row.catalog_entry = found.get(row.pk, CatalogWorkflow())
            row.strip = history_strip(runs.get(row.name, []), now)


class VersionsFilter(admin.SimpleListFilter):
    """Show only the newest version of each definition by default."""

    title, parameter_name = gettext_lazy("versions"), "versions"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("all", _("All versions")), ("archived", _("Archived"))]

    def choices(self, changelist: BoundedChangeList):
        for choice in super().choices(changelist):
            yield choice | ({"display": _("Newest only")} if choice["query_string"].find("versions=") < 0 else {})

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() == "all":
            return queryset
        return queryset.filter(pk__in=newest_definitions().values("pk"), archived_at__isnull=self.value() != "archived")


class ArchiveFilter(admin.SimpleListFilter):
    """Hide archived definitions by default."""

    title, parameter_name = gettext_lazy("status"), "status"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("archived", _("Archived"))]

    def choices(self, changelist: BoundedChangeList):
        for choice in super().choices(changelist):
            yield choice | ({"display": _("Active")} if choice["query_string"].find("status=") < 0 else {})

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(archived_at__isnull=self.value() != "archived")


class CatalogTaskList(BoundedChangeList):
    """A page of task definitions with their catalog entries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        found = catalog_tasks(self.result_list)
        for row in self.result_list:
            row.catalog_entry = found[row.pk]


def render_flags(flags: Mapping[str, str]) -> SafeString:
    """Return the warnings of a definition, each with its explanation as tooltip."""
    marks = (
        (why.replace("`", ""), render_pill(FLAG_TONES[flag], str(FLAG_LABELS[flag]), FLAG_ICONS.get(flag, "warning")))
        for flag, why in flags.items()
    )
    return format_html('<span class="flags">{}</span>', format_html_join(" ", '<span title="{}">{}</span>', marks))


class CatalogColumns:
    """The columns of the list of workflow definitions."""

    @admin.display(description=gettext_lazy("name"))
    def title(self, row: WorkflowDefinition) -> SafeString:
        name = format_html('<strong>{}</strong> <span class="version">v{}</span>', row.name, row.version)
        return format_html('<a href="{}/change/">{}</a> {}', row.pk, name, render_flags(row.catalog_entry.flags))

    @admin.display(description=gettext_lazy("used by"))
    def used_by(self, row: WorkflowDefinition) -> str:
        return format_count(row.catalog_entry.used_by) if row.catalog_entry.used_by else "–"

    @admin.display(description=gettext_lazy("runs 24 h"))
    def runs(self, row: WorkflowDefinition) -> str:
        count = row.catalog_entry.health.runs
        return f"{format_count(count)}{'+' if row.catalog_entry.is_capped else ''}" if count else "–"

    @admin.display(description=gettext_lazy("failed"))
    def failed(self, row: WorkflowDefinition) -> SafeString | str:
        percent = row.catalog_entry.health.failure_percent
        if percent is None:
            return "–"
        return format_html('<span class="{}">{} %</span>', "late" if percent else "", percent)

    @admin.display(description=gettext_lazy("last runs"))
    def history(self, row: WorkflowDefinition) -> SafeString:
        return row.strip

    @admin.display(description=gettext_lazy("p95"))
    def p95(self, row: WorkflowDefinition) -> str:
        return "–" if row.catalog_entry.health.p95_ms is None else format_duration(row.catalog_entry.health.p95_ms)

    @admin.display(description=gettext_lazy("change note"))
    def why(self, row: WorkflowDefinition) -> str:
        return row.catalog_entry.reason or "–"
