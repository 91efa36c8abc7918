"""What a filter has looked at where no index knows: said above the list, with the ways to look further, and quicker."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...insight.selections import ScanNote
from .filters import FIELDS, address_with

LABELS = {field.part: field.label for field in FIELDS}
QUICKER = {
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
    quicker: tuple[str, str] | None


def coverage_notes(notes: Iterable[ScanNote], given: QueryDict) -> list[CoverageNote]:
    """What the filters of an address have looked at."""
    return [
        CoverageNote(
            LABELS[note.filter],
            note.number,
            note.since,
            address_with(given, started_before=str(note.since)),
            _quicker(note.filter, given),
        )
        for note in notes
    ]


def _quicker(name: str, given: QueryDict) -> tuple[str, str] | None:
    if name not in QUICKER:
        return None
    words, page = QUICKER[name]
    asked = {"view": "all", "q": given.get(name, "").partition(":")[0]}
    return _(words), reverse(page, query=asked | ({"definition": given["name"]} if given.get("name") else {}))
