"""A definition read as a careful colleague would read it: everything that is odd about it, each with its place."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from ...errors import ValidationError
from ...step_tree import StepSpot, walk
from ..inline_definitions import DEFINITION, PARAM, extract_definitions
from .ai_tasks import lint_ai_tasks
from .control_flow import lint_control_flow
from .findings import (
    BROKEN,
    ERROR,
    HINT,
    NO_RESULT,
    REFUSED,
    UNREADABLE,
    UNUSABLE_SCHEMA,
    WARNING,
    LintContext,
    LintFinding,
    PayloadShape,
)
from .names import lint_names
from .reference_findings import ReferenceLinter
from .scripts import reads_as_javascript, returns_nothing
from .unknown_fields import lint_document, lint_task_definition, lint_unknown_fields
from .webhooks import lint_webhooks

__all__ = [
    "BROKEN",
    "ERROR",
    "HINT",
    "NO_RESULT",
    "UNREADABLE",
    "UNUSABLE_SCHEMA",
    "WARNING",
    "LintContext",
    "LintFinding",
    "PayloadShape",
    "lint_definition",
    "lint_document",
    "lint_task_definition",
    "reads_as_javascript",
    "returns_nothing",
    "sort_by_severity",
]

MAX_FINDINGS = 200
"""The maximum number of findings of a definition. A name to suggest may take 3 ms for each."""
SEVERITY_ORDER = {ERROR: 0, WARNING: 1, HINT: 2}


def lint_definition(
    document: Any, known: LintContext | None = None, validation_errors: Iterable[ValidationError] = ()
) -> list[LintFinding]:
    """Return all findings, most severe first.

    `validation_errors`: those of the document; one without a position is omitted if a finding reports the same
    with its position.
    """
    if not isinstance(document, dict):
        return [LintFinding(ERROR, REFUSED, "", "A definition is a JSON object.")]
    known = known or LintContext()
    found = list(walk(document.get("tasks")))
    found_by_all = chain(
        lint_control_flow(found),
        lint_unknown_fields(document, found),
        ReferenceLinter(document, found, known).findings(),
        lint_names(document, found, known),
        lint_webhooks(document, found, known),
        lint_ai_tasks(found, known),
        _inline_findings(found, known),
    )
    said = list(islice(found_by_all, MAX_FINDINGS))
    has_place = any(finding.severity == ERROR for finding in said)
    refused = [
        LintFinding(ERROR, REFUSED, each.path, each.message) for each in validation_errors if each.path or not has_place
    ]
    return sort_by_severity([*refused, *said])


def sort_by_severity(found: Iterable[LintFinding]) -> list[LintFinding]:
    """Sort findings by severity; those of one severity keep their order."""
    return sorted(found, key=lambda finding: SEVERITY_ORDER[finding.severity])


def _inline_findings(found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield the findings of the definitions that SUB_WORKFLOW steps hold: each is read as a workflow of its own."""
    for spot in found:
        _, definitions = extract_definitions({PARAM: spot.step.get(PARAM)})
        for definition in definitions.values():
            for finding in lint_definition(definition, known):
                place = f"{spot.path}.{PARAM}.{DEFINITION}"
                yield replace(finding, path=f"{place}.{finding.path}" if finding.path else place)
