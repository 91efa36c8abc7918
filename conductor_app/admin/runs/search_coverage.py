"""Notes about filters without an index that searched only the newest runs, with links to search further or faster."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...insight.bulk.selections import ScanNote
from .run_filters import FILTER_FIELDS, address_with

FILTER_LABELS = {field.selection_key: field.label for field in FILTER_FIELDS}
FASTER_SEARCHES = {
    "error": (gettext_lazy("Search all failures for this error"), "admin:failures"),
    "task": (gettext_lazy("Search all failures of this task"), "admin:failures"),
}
"""Pages whose search uses an index and answers nearly the same question."""


@dataclass(frozen=True, slots=True)
class CoverageNote:
    """Note about one filter. `since`: start of the searched period. `older`: address that continues the search."""

    label: str
    number: int
    since: int
    older: str
    faster_search: tuple[str, str] | None


def coverage_notes(notes: Iterable[ScanNote], parameters: QueryDict) -> list[CoverageNote]:
    """Return the notes about the filters of an address."""
    return [
        CoverageNote(
            FILTER_LABELS[note.filter],
            note.number,
            note.since,
            address_with(parameters, started_before=str(note.since)),
            _faster_search(note.filter, parameters),
        )
        for note in notes
    ]


def _faster_search(name: str, parameters: QueryDict) -> tuple[str, str] | None:
    if name not in FASTER_SEARCHES:
        return None
    label, page = FASTER_SEARCHES[name]
    query = {"view": "all", "q": parameters.get(name, "").partition(":")[0]}
    return _(label), reverse(page, query=query | ({"definition": parameters["name"]} if parameters.get("name") else {}))
