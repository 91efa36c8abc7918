"""The parameters of a search, read from a request, and its reply (api §6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...access.conductor_auth import Actor
from ...access.permissions import filter_readable_runs
from ...core.errors import ValidationError, ValidationFailed
from ...insight.search import RUNS, TASKS, Clause, PageEnds, QueryValue, Search, SearchPage, SearchQuery
from ...insight.search.pages import Sort
from ...insight.search.search_query import SearchLanguage
from ...insight.search.tasks import attempts_of_runs
from ...models import Run
from .query_parameters import QueryParameters

LARGEST = 5_000
MOST_SORTS = 5
TOLD = ("query", "freeText", "sort", "classifier", "topLevelOnly")
"""What makes two pages belong to one question."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search: the page that it asks for, and the reply's own words."""

    search: Search
    start: int
    size: int
    places: PageEnds
    has_query_id: bool

    def page(self) -> SearchPage:
        return self.search.page(self.start, self.size, self.places)

    def reply(self, page: SearchPage, results: Sequence[Any]) -> dict[str, Any]:
        """SearchResult. What goes beyond it is said only where there is something to say."""
        document: dict[str, Any] = {"totalHits": page.total, "results": results}
        if self.has_query_id and page.place:
            document["queryId"] = self.places.query_id(page.place)
        if not page.is_exact:
            document["totalHitsIsLowerBound"] = True
        if page.since is not None:
            document["searchedSince"] = page.since
        return document


def workflow_search(query: QueryParameters, actor: Actor) -> SearchRequest:
    """A search for the workflows that the actor may read."""
    classifiers = tuple(QueryValue(each.strip(), 0) for each in query.texts("classifier"))
    also = [Clause("classifier", "IN", classifiers, 0)] if classifiers else []
    if query.flag("topLevelOnly", False):
        also.append(Clause("parentWorkflowId", "=", (QueryValue("", 0),), 0))
    return parse_search(query, actor, RUNS, filter_readable_runs(actor, Run.objects.all()), also, int)


def task_search(query: QueryParameters, actor: Actor, shown: str = "pk") -> SearchRequest:
    """A search for the tasks of workflows that the actor may read. `shown`: what of each hit is wanted."""
    return parse_search(query, actor, TASKS, filter_readable_runs(actor, attempts_of_runs(), "run__"), [], str, shown)


def parse_search(
    query: QueryParameters,
    actor: Actor,
    language: SearchLanguage,
    rows: Any,
    also: list[Clause],
    kind: type,
    shown: str = "pk",
) -> SearchRequest:
    start, size = max(query.whole("start", 0), 0), max(query.whole("size", 100), 0)
    if size > LARGEST:
        complaint = f"Cannot return more than {LARGEST} workflows. Please use pagination."
        raise ValidationFailed([ValidationError("searchWorkflows.size", complaint, size)])
    question = SearchQuery(language, query.text("query"), query.text("freeText"), also)
    told = [actor.name, language.things, *(query.values.get(name) for name in TOLD)]
    places = PageEnds(told, kind, query.text("queryId"), query.flag("skipCache", False))
    search = Search(rows, question, parse_sorts(query, language), shown)
    return SearchRequest(search, start, size, places, "queryId" in query.values)


def parse_sorts(query: QueryParameters, language: SearchLanguage) -> list[Sort]:
    """`startTime:DESC|status`, or several parameters; fields that are not known do not count."""
    texts = [each for value in query.values.get("sort", ()) for each in value.replace(",", "|").split("|")]
    found: dict[str, bool] = {}
    for text in texts:
        name, _, direction = text.partition(":")
        column = sort_columns(language).get(name.strip().lower())
        if column and len(found) < MOST_SORTS:
            found.setdefault(column, direction.strip().upper() == "DESC")
    return list(found.items())


def sort_columns(language: SearchLanguage) -> dict[str, str]:
    return {name.lower(): column for name, column in language.sorts.items()}
