"""Selections: filters of runs as documents, which can be saved, described in words and evaluated as one query.

indexed       filters that an index supports
scanning      filters that scan the newest runs
descriptions  a selection as text
api_queries   a selection in the query language of the API
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from ....core.errors import Invalid
from ....models import Run
from .descriptions import DESCRIPTIONS, describe, failure_group_titles
from .indexed import INDEXED_FILTERS, LAST, MAX_IDS, START_ORDER_FILTERS, ended_between, search_runs
from .scanning import SCANNING_FILTERS, SEARCHED_ROWS, ScannedRuns

__all__ = [
    "DESCRIPTIONS",
    "FILTERS",
    "LAST",
    "MAX_IDS",
    "MOMENTS",
    "TYPES",
    "Selection",
    "clean_selection",
    "countable_runs",
    "describe_selection",
    "failure_group_titles",
    "select_with_notes",
    "selected_runs",
]

Selection = Mapping[str, Any]
Filter = Callable[[QuerySet[Run], Any], QuerySet[Run] | ScannedRuns]
FILTERS: dict[str, Filter] = {"search": search_runs, **INDEXED_FILTERS, **SCANNING_FILTERS}
"""All filters of runs. The scanning ones come last, so that the others leave fewer rows to scan."""
MOMENTS = ("started_since", "started_before", "ended_since", "ended_before")
MAX_INTEGER = 2**63 - 1
"""The largest integer of a database."""
TYPES: dict[str, type | tuple[type, ...]] = {
    "ids": (list, tuple),
    "status": (list, tuple),
    "version": int,
    "failure_group": int,
    **dict.fromkeys((*MOMENTS, "least_ms", "most_ms"), int),
}


@dataclass(frozen=True, slots=True)
class ScanNote:
    """Range that a scanning filter has covered: the newest `number` runs, created at `since` or later."""

    filter: str
    number: int
    since: int


def selected_runs(selection: Selection) -> QuerySet[Run]:
    """Return the runs of a selection.

    Raises:
        Invalid: when a filter is unknown or has an invalid value.
    """
    return select_with_notes(selection)[0]


def select_with_notes(selection: Selection, by_start: bool = False) -> tuple[QuerySet[Run], list[ScanNote]]:
    """Return the runs of a selection, and the ranges of the filters that have not scanned all runs.

    `by_start`: True if the caller reads the runs in the order of their starts, page by page.

    Raises:
        Invalid: when a filter is unknown or has an invalid value.
    """
    cleaned, rows, notes = clean_selection(selection), Run.objects.defer_payloads(), []
    filters = FILTERS | START_ORDER_FILTERS if _is_by_start(cleaned, by_start) else FILTERS
    for name in (name for name in filters if name in cleaned):
        found = filters[name](rows, cleaned[name])
        rows = found.rows if isinstance(found, ScannedRuns) else found
        if isinstance(found, ScannedRuns) and found.since is not None:
            notes.append(ScanNote(name, found.number, found.since))
    return rows, notes


def countable_runs(selection: Selection, found: QuerySet[Run]) -> QuerySet[Run]:
    """Return a query that counts the found runs efficiently: by the index on ends if only ends are filtered."""
    cleaned = clean_selection(selection)
    return (
        selected_runs(cleaned)
        if cleaned.keys() & START_ORDER_FILTERS.keys() and not cleaned.keys() & SCANNING_FILTERS.keys()
        else found
    )


def _is_by_start(cleaned: Selection, by_start: bool) -> bool:
    """Return True if enough runs ended in the span that reading them in start order is faster than sorting them."""
    if not (by_start or cleaned.keys() & SCANNING_FILTERS.keys()) or not cleaned.keys() & START_ORDER_FILTERS.keys():
        return False
    return ended_between(cleaned).values("ended_at")[: SEARCHED_ROWS + 1].count() > SEARCHED_ROWS


def clean_selection(selection: Selection) -> dict[str, Any]:
    """Return the selection without empty filters.

    Raises:
        Invalid: when a filter is unknown or has a value of the wrong type or size.
    """
    if unknown := sorted(selection.keys() - FILTERS.keys()):
        raise Invalid(f"Unknown filter: {', '.join(unknown)}. Use: {', '.join(FILTERS)}.")
    cleaned = {name: value for name, value in selection.items() if value not in (None, "", [], ())}
    for name, value in cleaned.items():
        is_too_large = isinstance(value, int) and abs(value) > MAX_INTEGER
        if not isinstance(value, TYPES.get(name, str)) or isinstance(value, bool) or is_too_large:
            raise Invalid(f"Invalid value of the filter {name}: {value!r}.")
    return cleaned


def describe_selection(selection: Selection, group_titles: Mapping[int, str] | None = None) -> str:
    """Return a selection as text. `group_titles`: the result of `failure_group_titles`, if it is known."""
    cleaned = clean_selection(selection)
    return describe(cleaned, failure_group_titles([cleaned]) if group_titles is None else group_titles)
