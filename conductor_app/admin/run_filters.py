"""How runs are narrowed down: filters, each of which an index answers."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from .. import clock
from ..core.states import RUN
from ..insight.spans import DAY, HOUR
from ..models import WorkflowDefinition

MOST_DEFINITIONS = 60


class StatusFilter(admin.SimpleListFilter):
    """By status."""

    title, parameter_name = "status", "status"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        order = ("RUNNING", "PAUSED", "FAILED", "TIMED_OUT", "TERMINATED", "COMPLETED")
        return [(status, status.replace("_", " ").capitalize()) for status in order if status in RUN.statuses]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(status=self.value()) if self.value() else queryset


class DefinitionFilter(admin.SimpleListFilter):
    """By the name of the definition; those changed last are offered."""

    title, parameter_name = "definition", "name"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        newest = WorkflowDefinition.objects.order_by("-id").values_list("name", flat=True)[: 2 * MOST_DEFINITIONS]
        names = list(dict.fromkeys([*filter(None, [request.GET.get("name")]), *newest]))[:MOST_DEFINITIONS]
        return [(name, name) for name in sorted(names)]

    def has_output(self) -> bool:
        return bool(self.lookup_choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.of_definition(self.value()) if self.value() else queryset


class StartedFilter(admin.SimpleListFilter):
    """By when it started."""

    title, parameter_name = "started", "started"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("hour", "Last hour"), ("today", "Today (UTC)"), ("24h", "Last 24 hours"), ("7d", "Last 7 days")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        now = clock.now()
        since = {"hour": now - HOUR, "today": now - now % DAY, "24h": now - DAY, "7d": now - 7 * DAY}
        return queryset.filter(created_at__gte=since[self.value()]) if self.value() in since else queryset
