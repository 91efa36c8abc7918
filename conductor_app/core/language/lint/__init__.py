"""A definition read as a careful colleague would read it: everything that is odd about it, each with its place."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ...errors import Complaint
from ..inline_definitions import DEFINITION, PARAM, take_out
from .findings import (
    BROKEN,
    ERROR,
    HINT,
    NO_RESULT,
    REFUSED,
    UNREADABLE,
    UNUSABLE_SCHEMA,
    WARNING,
    Finding,
    Shape,
    Surroundings,
)
from .flow import flow_findings
from .names import name_findings
from .places import Spot, spots
from .references import References
from .scripts import reads_as_javascript, returns_nothing
from .webhooks import webhook_findings

__all__ = [
    "BROKEN",
    "ERROR",
    "HINT",
    "NO_RESULT",
    "UNREADABLE",
    "UNUSABLE_SCHEMA",
    "WARNING",
    "Finding",
    "Shape",
    "Surroundings",
    "findings",
    "gravest_first",
    "reads_as_javascript",
    "returns_nothing",
]

GRAVITY = {ERROR: 0, WARNING: 1, HINT: 2}


def findings(document: Any, known: Surroundings | None = None, complaints: Iterable[Complaint] = ()) -> list[Finding]:
    """Everything there is to say, gravest first.

    `complaints`: why the document would be refused; those that name no place are left out where a finding says the
    same and says where.
    """
    if not isinstance(document, dict):
        return [Finding(ERROR, REFUSED, "", "A definition is a JSON object.")]
    known = known or Surroundings()
    found = list(spots(document.get("tasks")))
    said = [
        *flow_findings(found),
        *References(document, found, known).findings(),
        *name_findings(document, found, known),
        *webhook_findings(document, found, known),
        *_inline_findings(found, known),
    ]
    has_place = any(finding.severity == ERROR for finding in said)
    refused = [Finding(ERROR, REFUSED, each.path, each.message) for each in complaints if each.path or not has_place]
    return gravest_first([*refused, *said])


def gravest_first(found: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity; those of one severity keep their order."""
    return sorted(found, key=lambda finding: GRAVITY[finding.severity])


def _inline_findings(found: Iterable[Spot], known: Surroundings) -> Iterator[Finding]:
    """Yield the findings of the definitions that SUB_WORKFLOW steps hold: each is read as a workflow of its own."""
    for spot in found:
        _, definitions = take_out({PARAM: spot.step.get(PARAM)})
        for definition in definitions.values():
            for finding in findings(definition, known):
                place = f"{spot.path}.{PARAM}.{DEFINITION}"
                yield replace(finding, path=f"{place}.{finding.path}" if finding.path else place)
