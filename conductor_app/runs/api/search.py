"""The parameters of a search, read from a request, and its reply (api §6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....access.conductor_auth import Actor
from ....access.permissions import filter_readable_runs
from ....core.errors import Invalid, ValidationError, ValidationFailed
from ....insight.runs.search import RUNS, TASKS, Clause, PageEnds, QueryValue, Search, SearchPage, SearchQuery
from ....insight.runs.search.result_pages import Sort
from ....insight.runs.search.search_language import SearchLanguage
from ....insight.runs.search.task_fields import searchable_attempts
from ....models import Run
from ..query_parameters import QueryParameters

MAX_PAGE_SIZE = 5_000
MAX_SORTS = 5
QUERY_IDENTITY_PARAMETERS = ("query", "freeText", "sort", "classifier", "topLevelOnly")
"""The parameters that are equal in two pages of one search."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search: its page, and the response in Conductor's format."""

    search: Search
    start: int
    size: int
    page_ends: PageEnds
    has_query_id: bool

    def page(self) -> SearchPage:
        return self.search.page(self.start, self.size, self.page_ends)

    def reply(self, page: SearchPage, results: Sequence[Any]) -> dict[str, Any]:
        """Return a SearchResult. Fields beyond Conductor's are present only if they have a value."""
        document: dict[str, Any] = {"totalHits": page.total, "results": results}
        if self.has_query_id and page.page_end:
            document["queryId"] = self.page_ends.query_id(page.page_end)
        if not page.is_exact:
            document["totalHitsIsLowerBound"] = True
        if page.since is not None:
            document["searchedSince"] = page.since
        return document


def parse_workflow_search(query: QueryParameters, actor: Actor) -> SearchRequest:
    """Return a search for workflows that the actor may read."""
    classifiers = tuple(QueryValue(each.strip(), 0) for each in query.texts("classifier"))
    extra_clauses = [Clause("classifier", "IN", classifiers, 0)] if classifiers else []
    if query.flag("topLevelOnly", False):
        extra_clauses.append(Clause("parentWorkflowId", "=", (QueryValue("", 0),), 0))
    return parse_search(query, actor, RUNS, filter_readable_runs(actor, Run.objects.all()), extra_clauses, int)


def parse_task_search(query: QueryParameters, actor: Actor, hit_field: str = "pk") -> SearchRequest:
    """Return a search for tasks of readable workflows. `hit_field`: the field that each result contains."""
    return parse_search(
        query, actor, TASKS, filter_readable_runs(actor, searchable_attempts(), "run__"), [], str, hit_field
    )


def parse_search(
    query: QueryParameters,
    actor: Actor,
    language: SearchLanguage,
    rows: Any,
    extra_clauses: list[Clause],
    kind: type,
    hit_field: str = "pk",
) -> SearchRequest:
    start, size = query.integer("start", 0), query.integer("size", 100)
    for name, value in (("start", start), ("size", size)):
        if value < 0:
            raise ValidationFailed([ValidationError(f"searchWorkflows.{name}", "must be at least 0", value)])
    if size > MAX_PAGE_SIZE:
        validation_error = f"Cannot return more than {MAX_PAGE_SIZE} workflows. Please use pagination."
        raise ValidationFailed([ValidationError("searchWorkflows.size", validation_error, size)])
    question = SearchQuery(language, query.text("query"), query.text("freeText"), extra_clauses)
    identity = [actor.name, language.plural_name, *(query.values.get(name) for name in QUERY_IDENTITY_PARAMETERS)]
    page_ends = PageEnds(identity, kind, query.text("queryId"), query.flag("skipCache", False))
    search = Search(rows, question, parse_sorts(query, language), hit_field)
    return SearchRequest(search, start, size, page_ends, "queryId" in query.values)


def parse_sorts(query: QueryParameters, language: SearchLanguage) -> list[Sort]:
    """Parse `startTime:DESC|status`, or several parameters.

    Raises:
        Invalid: when a field is unknown.
    """
    texts = [each for value in query.values.get("sort", ()) for each in value.replace(",", "|").split("|")]
    found: dict[str, bool] = {}
    for text in texts:
        name, _, direction = text.partition(":")
        if not name.strip():
            continue
        column = sort_columns(language).get(name.strip().lower())
        if column is None:
            raise Invalid(
                f"{language.plural_name.capitalize()} cannot be sorted by '{name.strip()[:50]}'. "
                f"Use one of: {', '.join(sorted(language.sorts))}."
            )
        if len(found) < MAX_SORTS:
            found.setdefault(column, direction.strip().upper() == "DESC")
    return list(found.items())


def sort_columns(language: SearchLanguage) -> dict[str, str]:
    return {name.lower(): column for name, column in language.sorts.items()}
