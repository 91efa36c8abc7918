"""Filters of runs that an index supports."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import BigIntegerField, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from ....core.errors import Invalid
from ....core.snapshot import NEVER
from ....core.states import RUN
from ....models import BulkItem, Failure, FailureGroup, Run, RunLabel, WorkflowDefinition
from ...durations import MINUTE
from ...runs.search import RUNS, Search, SearchQuery
from .scanning import ScannedRuns

LAST = "z" * 8
"""Sorts after every character of an id, in the collations of both databases."""
MAX_IDS = 1_000


def search_runs(found: QuerySet[Run], term: str) -> QuerySet[Run] | ScannedRuns:
    """Search runs by a query of the API, or by a term.

    A term is tried as the prefix of a run id, then as a correlation id, then as part of a definition name. The first
    that matches any run is used. Each try is a separate query without the other filters, so that one index serves it.

    Raises:
        Invalid: when a query is malformed.
    """
    if RUNS.is_query(term):
        query = SearchQuery(RUNS, term)
        found_search = Search(found, query)
        return ScannedRuns(found_search.hits(), query.scan_limit or 0, found_search.since)
    by_id = Q(id__gte=term, id__lte=term + LAST, id__startswith=term)
    by_correlation = Q(correlation_id=term) & ~Q(correlation_id="")
    for query in (by_id, by_correlation):
        if Run.objects.filter(query).exists():
            return found.filter(query)
    names = WorkflowDefinition.objects.filter(name__icontains=term).order_by("name").values_list("name", flat=True)
    return found.filter(name__in={term, *names.distinct()[:20]})


def _filter_ids(found: QuerySet[Run], ids: list[str]) -> QuerySet[Run]:
    if len(ids) > MAX_IDS:
        raise Invalid(f"A selection can list at most {MAX_IDS} runs (got {len(ids)}). Use other filters instead.")
    return found.filter(pk__in=[str(id) for id in ids])


def _filter_statuses(found: QuerySet[Run], statuses: list[str]) -> QuerySet[Run]:
    if unknown := sorted({str(status) for status in statuses} - RUN.statuses):
        raise Invalid(f"Unknown run status: {', '.join(unknown)[:100]}. Use: {', '.join(sorted(RUN.statuses))}.")
    return found.filter(status__in=statuses)


def _filter_top_level(found: QuerySet[Run], answer: str) -> QuerySet[Run]:
    if answer != "yes":
        raise Invalid(f"Invalid value of the filter top_level: {answer!r}. Use: yes.")
    return found.filter(parent_id="")


def _filter_failure_group(found: QuerySet[Run], group: int) -> QuerySet[Run]:
    """Select failed, timed-out and terminated runs with a failure in the group since they were last reopened."""
    # A join with the groups would read the failures of all groups; SQLite reads the index of one for a list of ids.
    groups = FailureGroup.objects.filter(Q(pk=group) | Q(merged_into=group)).values("pk")
    of_group = Failure.objects.filter(group__in=groups)
    return found.filter(status__in=("FAILED", "TIMED_OUT", "TERMINATED"), pk__in=of_group.values("run_id"))


def _filter_refused(found: QuerySet[Run], operation: str) -> QuerySet[Run]:
    return found.filter(pk__in=BulkItem.objects.filter(operation=operation, outcome="REFUSED").values("run_id"))


def ended_between(selection: Mapping[str, Any]) -> QuerySet[Run]:
    """Return all runs that ended in the span of a selection, by the index on ends alone."""
    found = Run.objects.order_by()
    for name in START_ORDER_FILTERS.keys() & selection.keys():
        found = INDEXED_FILTERS[name](found, selection[name])
    return found


def _unindexed_end(if_open: int) -> Coalesce:
    """Return the end of a run without use of its index, which would require sorting all matches by their start."""
    return Coalesce("ended_at", Value(if_open, BigIntegerField()))


INDEXED_FILTERS: dict[str, Callable[[QuerySet[Run], Any], QuerySet[Run]]] = {
    "ids": _filter_ids,
    "definition": lambda found, name: found.of_definition(name),
    "version": lambda found, version: found.filter(version=version),
    "status": _filter_statuses,
    "started_since": lambda found, moment: found.filter(created_at__gte=moment),
    "started_before": lambda found, moment: found.filter(created_at__lt=moment),
    "ended_since": lambda found, moment: found.filter(ended_at__gte=moment),
    "ended_before": lambda found, moment: found.filter(ended_at__lt=moment),
    "correlation_id": lambda found, id: found.filter(correlation_id=id).exclude(correlation_id=""),
    "label": lambda found, label: found.filter(pk__in=RunLabel.objects.filter(name=label).values("run_id")),
    "top_level": _filter_top_level,
    "parent": lambda found, id: found.filter(parent_id=id).exclude(parent_id=""),
    "started_by": lambda found, who: found.filter(started_by=who),
    "schedule": lambda found, name: found.filter(schedule=name).exclude(schedule=""),
    "idempotency_key": lambda found, key: found.filter(idempotency_key=key),
    "failure_group": _filter_failure_group,
    "refused_of": _filter_refused,
}
START_ORDER_FILTERS: dict[str, Callable[[QuerySet[Run], int], QuerySet[Run]]] = {
    "ended_since": lambda found, moment: found.alias(end=_unindexed_end(0)).filter(end__gte=moment),
    "ended_before": lambda found, moment: found.alias(end=_unindexed_end(NEVER)).filter(
        end__lt=moment, created_at__lt=moment + MINUTE
    ),
}
"""Filters on the end for spans in which many runs ended: the rows are read in start order, newest first.

A run ends after its start. The clocks of two servers are assumed to differ by less than a minute.
"""
