"""How runs are narrowed down: filters and a search, each of which an index answers."""

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from .. import clock
from ..core.states import RUN
from ..insight.search import RUNS, Question, Search
from ..insight.spans import DAY, HOUR
from ..models import Run, WorkflowDefinition

MOST_DEFINITIONS = 60
LAST = "z" * 8
"""Sorts behind every character of an id, in the collations of both databases."""


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


def search(runs: QuerySet[Run], term: str) -> QuerySet[Run]:
    """What a query finds, in the words of the API; else runs whose id begins like this; else those of this correlation
    id; else those of definitions named so. Raises Invalid where a query cannot be understood.

    One after another, and whatever else is asked for is asked afterwards: so one index answers each question.
    """
    if RUNS.speaks(term):
        return Search(runs, Question(RUNS, term)).hits()
    by_id = Q(id__gte=term, id__lte=term + LAST, id__startswith=term)
    by_correlation = Q(correlation_id=term) & ~Q(correlation_id="")
    for question in (by_id, by_correlation):
        if Run.objects.filter(question).exists():
            return runs.filter(question)
    names = WorkflowDefinition.objects.filter(name__icontains=term).order_by("name").values_list("name", flat=True)
    return runs.filter(name__in={term, *names.distinct()[:20]})
