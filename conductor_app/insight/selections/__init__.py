"""Selections: a filter of runs as a document, so that it can be kept, shown in words, and asked again as one query.

indexed.py   what an index answers       looking.py   what is looked for among the newest, one by one
words.py     a selection as a person would say it
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from ...core.errors import Invalid
from ...models import Run
from .descriptions import DESCRIPTIONS, describe
from .indexed import INDEXED_FILTERS, LAST, MOST_IDS, START_ORDER_FILTERS, ended_between, search_runs
from .scanning import LOOKED_AT, SCANNING_FILTERS, ScannedRuns

__all__ = [
    "DESCRIPTIONS",
    "FILTERS",
    "LAST",
    "MOMENTS",
    "MOST_IDS",
    "TYPES",
    "Selection",
    "clean_selection",
    "countable_runs",
    "describe_selection",
    "select_with_notes",
    "selected_runs",
]

Selection = Mapping[str, Any]
Filter = Callable[[QuerySet[Run], Any], QuerySet[Run] | ScannedRuns]
FILTERS: dict[str, Filter] = {"search": search_runs, **INDEXED_FILTERS, **SCANNING_FILTERS}
"""Everything by which runs can be selected. What looks one by one comes last: the others leave it less to look at."""
MOMENTS = ("started_since", "started_before", "ended_since", "ended_before")
TYPES: dict[str, type | tuple[type, ...]] = {
    "ids": (list, tuple),
    "status": (list, tuple),
    "version": int,
    "failure_group": int,
    **dict.fromkeys((*MOMENTS, "least_ms", "most_ms"), int),
}


@dataclass(frozen=True, slots=True)
class ScanNote:
    """What a filter has looked at: the newest so many, those that began at `since` or later."""

    filter: str
    number: int
    since: int


def selected_runs(selection: Selection) -> QuerySet[Run]:
    """The runs of a selection. Raises Invalid where it names what there is not, or holds what cannot be read."""
    return select_with_notes(selection)[0]


def select_with_notes(selection: Selection, by_start: bool = False) -> tuple[QuerySet[Run], list[ScanNote]]:
    """The runs of a selection, and which filters have not looked at all of them. Raises Invalid.

    `by_start`: whether they are asked for in the order of their starts, a page at a time.
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
    """The same runs as were found, to be counted up to a bound: by their ends where those alone are asked for."""
    cleaned = clean_selection(selection)
    return (
        selected_runs(cleaned)
        if cleaned.keys() & START_ORDER_FILTERS.keys() and not cleaned.keys() & SCANNING_FILTERS.keys()
        else found
    )


def _is_by_start(cleaned: Selection, by_start: bool) -> bool:
    """Whether so many ended in the span that is named that their starts are walked: to sort them would take longer."""
    if not (by_start or cleaned.keys() & SCANNING_FILTERS.keys()) or not cleaned.keys() & START_ORDER_FILTERS.keys():
        return False
    return ended_between(cleaned).values("ended_at")[: LOOKED_AT + 1].count() > LOOKED_AT


def clean_selection(selection: Selection) -> dict[str, Any]:
    """The selection without what is empty; raises Invalid."""
    if unknown := sorted(selection.keys() - FILTERS.keys()):
        raise Invalid(f"Runs cannot be selected by {', '.join(unknown)}; only by: {', '.join(FILTERS)}.")
    cleaned = {name: value for name, value in selection.items() if value not in (None, "", [], ())}
    for name, value in cleaned.items():
        if not isinstance(value, TYPES.get(name, str)) or isinstance(value, bool):
            raise Invalid(f"{name} of a selection is {value!r}, which makes no sense.")
    return cleaned


def describe_selection(selection: Selection) -> str:
    """The selection as a person would say it."""
    return describe(clean_selection(selection))
