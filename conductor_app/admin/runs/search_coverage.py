"""What a filter has looked at where no index knows: said above the list, with the ways to look further, and quicker."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...insight.selections import ScanNote
from .filters import FILTER_FIELDS, address_with

FILTER_LABELS = {field.selection_key: field.label for field in FILTER_FIELDS}
FASTER_SEARCHES = {
    "error": (gettext_lazy("Failures with these words, of all runs"), "admin:failures"),
    "task": (gettext_lazy("Failures of this task, of all runs"), "admin:failures"),
}
"""Where an index answers what nearly the same question asks."""


@dataclass(frozen=True, slots=True)
class CoverageNote:
    """One filter's note. `since`: from where on was looked; `older`: the address that goes on from there."""

    label: str
    number: int
    since: int
    older: str
    faster_search: tuple[str, str] | None


def coverage_notes(notes: Iterable[ScanNote], parameters: QueryDict) -> list[CoverageNote]:
    """What the filters of an address have looked at."""
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
    words, page = FASTER_SEARCHES[name]
    query = {"view": "all", "q": parameters.get(name, "").partition(":")[0]}
    return _(words), reverse(page, query=query | ({"definition": parameters["name"]} if parameters.get("name") else {}))
