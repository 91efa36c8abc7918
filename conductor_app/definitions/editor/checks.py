"""Checks of a definition while it is edited: findings with their positions, its drawing, and completions."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from ...access.visibility import usable
from ...core.decision_context import RUN_FACTS, RUN_PAYLOADS, TASK_FACTS
from ...core.definition import StepSpot, type_of, walk
from ...core.document.differences import HOLDS_STEPS
from ...core.document.fields import (
    RATE_LIMIT,
    STEP_FIELDS,
    SUB_WORKFLOW,
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
    FieldTable,
)
from ...core.document.json_positions import TextPosition, TextPositions
from ...core.step_edits import places_of
from ...core.step_types import STEP_TYPES
from ...core.validation.checks import ACTIONS, EVENT_HANDLER
from ...core.validation.findings import (
    ERROR,
    HINT,
    REFUSED,
    WARNING,
    LintContext,
    LintFinding,
    PayloadShape,
    step_output_shape,
    workflow_input_shape,
)
from ...events.queries import lint_handler
from ...web.forms import parse_json_value, syntax_error_text
from ...web.pages import render_to_string
from ..diagram.pages import draw_definition
from ..models import WorkflowDefinition
from ..policies import place_label, policy_context
from ..validation import check_handler, definition_context, lint_task, lint_workflow, validate_task, validate_workflow

WORKFLOW, TASK, HANDLER = "workflow", "task", "event_handler"
UNKNOWN_POSITION = TextPosition(1, 0, 0)
SEVERITY_ICONS = {ERROR: "failed", WARNING: "warning", HINT: "active"}
SEVERITY_TONES = {ERROR: "failed", WARNING: "waiting", HINT: "active"}
MAX_FINDINGS = 200
INNER_STEP = re.compile(rf"\.({'|'.join(sorted(HOLDS_STEPS))})\b.*\[\d+\]")
"""The rest of a path behind a step, if it leads to a step inside it."""
REQUIRED_FIELD = re.compile(r"(\w+) field is required for taskType: ")
NO_STEPS = "WorkflowTask list cannot be empty"
HINTS_BY_FIELD = {
    "tasks": gettext_noop("The workflow has no steps yet. Add the first one."),
    "loopOver": gettext_noop("The loop has no steps yet. Add one inside it."),
    "tryTasks": gettext_noop("There are no steps to try yet. Add one inside it."),
}
MAX_DEPTH = 5
MAX_NAMES = 500
TABLES: dict[str, FieldTable] = {
    "workflow": WORKFLOW_DEFINITION,
    "step": STEP_FIELDS,
    "subWorkflowParam": SUB_WORKFLOW,
    "taskDefinition": TASK_DEFINITION,
    "rateLimitConfig": RATE_LIMIT,
    "eventHandler": EVENT_HANDLER,
}
CHOICES = {
    "evaluatorType": ["value-param", "javascript", "graaljs", "python"],
    "timeoutPolicy": ["TIME_OUT_WF", "ALERT_ONLY", "RETRY"],
    "retryLogic": ["FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"],
    "joinMode": ["SYNC", "ASYNC"],
    "idempotencyStrategy": ["FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING"],
    "terminationStatus": ["COMPLETED", "FAILED", "TERMINATED"],
    "method": ["GET", "POST", "PUT", "PATCH", "DELETE"],
    "action": list(ACTIONS),
}


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding, its position in the text, and the reference of its step.

    `owner`: "" in a document without steps; the word for the workflow if the finding is on none of its steps.
    """

    finding: LintFinding
    position: TextPosition
    owner: str = ""

    @property
    def icon(self) -> str:
        return SEVERITY_ICONS[self.finding.severity]

    @property
    def tone(self) -> str:
        return SEVERITY_TONES[self.finding.severity]

    def to_json(self) -> dict[str, Any]:
        """Return the finding in the form that the editor reads."""
        finding, position = self.finding, self.position
        message = finding.message.replace("`", "")
        facts = {"severity": finding.severity, "message": message, "written": finding.written, "meant": finding.meant}
        return {**facts, "line": position.line, "column": position.column, "length": position.length}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Findings for a text. `document`: None if the text is not a JSON object."""

    document: dict[str, Any] | None
    findings: list[PlacedFinding]
    known: dict[str, Any] | None = None

    def count(self, severity: str) -> int:
        return sum(each.finding.severity == severity for each in self.findings)

    @property
    def errors(self) -> int:
        return self.count(ERROR)

    @property
    def rejections(self) -> int:
        """Return the number of findings that saving rejects."""
        return sum(each.finding.severity == ERROR or each.finding.kind == REFUSED for each in self.findings)

    @property
    def warnings(self) -> int:
        return self.count(WARNING)

    @property
    def hints(self) -> int:
        return self.count(HINT)


def check_text(kind: str, text: str) -> CheckResult:
    """Parse and check a text of the kind `workflow`, `task` or `handler`."""
    parsed = parse_text(text)
    return parsed if parsed.document is None else CHECKS[kind](parsed.document, text)


def parse_text(text: str) -> CheckResult:
    """Parse a text without checking the definition. The findings are those of a text that is not a JSON object."""
    try:
        document = parse_json_value(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = syntax_error_text(error)
        position = TextPosition(error.lineno, max(error.colno - 1, 0), 1)
        return CheckResult(None, [PlacedFinding(LintFinding(ERROR, "no JSON", "", message), position)])
    except (RecursionError, ValueError) as error:
        return CheckResult(
            None,
            [
                PlacedFinding(
                    LintFinding(ERROR, "no JSON", "", _("Invalid JSON: %(error)s.") % {"error": error}),
                    UNKNOWN_POSITION,
                )
            ],
        )
    if not isinstance(document, dict):
        message = _("A definition must be a JSON object ({…}).")
        finding = LintFinding(ERROR, "no JSON", "", message)
        return CheckResult(None, [PlacedFinding(finding, UNKNOWN_POSITION)])
    return CheckResult(document, [])


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _check_workflow(document: dict[str, Any], text: str) -> CheckResult:
    context = definition_context([document])
    findings = lint_workflow(document, context, validate_workflow(document))
    return CheckResult(document, place_findings(findings, text, document), complete_workflow(document, context))


def _check_task(document: dict[str, Any], text: str) -> CheckResult:
    validation_errors = validate_task(document)
    errors = [LintFinding(ERROR, "refused", each.path, each.message) for each in validation_errors]
    findings = [*errors, *lint_task(document)]
    return CheckResult(document, place_findings(findings, text), complete_task())


def _check_handler(document: dict[str, Any], text: str) -> CheckResult:
    return CheckResult(document, place_findings(lint_handler(*check_handler(document)), text), complete_handler())


CHECKS = {WORKFLOW: _check_workflow, TASK: _check_task, HANDLER: _check_handler}


def place_findings(
    findings: list[LintFinding], text: str, workflow: Mapping[str, Any] | None = None
) -> list[PlacedFinding]:
    """Return the findings with their positions in the text. `workflow`: the document, if its steps are to be named."""
    positions = TextPositions(text)
    refs = {spot.path: spot.ref or spot.path for spot in walk(workflow.get("tasks"))} if workflow else {}
    return [
        PlacedFinding(
            _advise(each) if each.kind == REFUSED else each,
            positions.of(each.path) or UNKNOWN_POSITION,
            _owner_of(each.path, refs) if workflow else "",
        )
        for each in findings[:MAX_FINDINGS]
    ]


def _owner_of(path: str, refs: Mapping[str, str]) -> str:
    """Return the reference of the innermost step around a path."""
    while path and path not in refs:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return refs.get(path) or _("workflow")


def _advise(finding: LintFinding) -> LintFinding:
    """Return what to do instead of a message that the API has from the original. A missing first step is a hint."""
    missing = REQUIRED_FIELD.match(finding.message)
    field = "tasks" if finding.message == NO_STEPS else missing[1] if missing else ""
    if field in HINTS_BY_FIELD:
        return replace(finding, severity=HINT, message=_(HINTS_BY_FIELD[field]))
    return replace(finding, message=_("`%(field)s` is missing. Fill it in.") % {"field": field}) if field else finding


def checks_response(request: HttpRequest, kind: str) -> JsonResponse:
    """Return the findings for the text that the editor sends while the user types."""
    return JsonResponse(checks_report(check_text(kind, request.POST.get("document", "")), kind))


def checks_report(result: CheckResult, kind: str) -> dict[str, Any]:
    """Return the findings for a text, its drawing and its completions in the form that the editor reads."""
    picture_html = None
    if kind == WORKFLOW and result.document is not None:
        context = {**draw_checked(result), "name": result.document.get("name", "")}
        picture_html = render_to_string("ops/definitions/diagram.html", context)
    elif kind == TASK and result.document is not None:
        picture_html = render_to_string("ops/definitions/policy.html", policy_context(result.document))
    return {
        "findings": [each.to_json() for each in result.findings],
        "list": render_to_string("ops/definitions/findings.html", {"checked": result}),
        "picture": picture_html,
        "known": result.known,
    }


@dataclass(frozen=True, slots=True)
class DiagramFinding:
    """The mark of a box whose step has findings: the color and icon of the most severe one, and all messages."""

    path: str
    tone: str
    icon: str
    text: str
    x: int
    y: int


def draw_checked(result: CheckResult) -> dict[str, Any]:
    """Return the diagram of a checked document with buttons that insert steps, and the marks of its findings."""
    document = result.document or {}
    picture = draw_definition(document, can_insert=True)
    labels = {place.path: place_label(place) for place in places_of(document)}
    for edge in picture.edges:
        if place := edge.insertion:
            edge.insertion = replace(place, label=labels.get(place.path, place.path))
    marks = []
    for node in picture.nodes:
        # Findings are sorted: the first one is the most severe. Hints are only in the list.
        own = [each for each in findings_of_step(result, node.path) if each.finding.severity != HINT]
        if own and not node.caption:
            text = "; ".join(each.finding.message.replace("`", "") for each in own)
            corner = node.x + node.width - 8, node.y - 8
            marks.append(DiagramFinding(node.path, own[0].tone, own[0].icon, f"{node.ref}: {text}", *corner))
    return {"picture": picture, "marks": marks}


def findings_of_step(result: CheckResult, path: str) -> list[PlacedFinding]:
    """Return the findings on a step, without those on the steps inside it."""
    return [each for each in result.findings if path and _belongs_to(each.finding.path, path)]


def _belongs_to(path: str, step_path: str) -> bool:
    """Return True if a path is that of a step, or of a member of it that is no step."""
    rest = path[len(step_path) :]
    return path.startswith(step_path) and rest[:1] in ("", ".") and not INNER_STEP.match(rest)


def complete_workflow(document: Mapping[str, Any], known: LintContext) -> dict[str, Any]:
    found = {spot.ref: spot for spot in walk(document.get("tasks")) if spot.ref}
    variables = document.get("variables")
    return {
        **_common_choices(known),
        "fields": {name: _field_names(name) for name in TABLES},
        "refs": list(found),
        "types": {ref: _spot_name(spot) for ref, spot in found.items()},
        "outputs": {ref: _name_tree(step_output_shape(spot, known)) for ref, spot in found.items()},
        "workflow": {
            "input": _name_tree(workflow_input_shape(document)),
            "variables": {name: {} for name in (variables if isinstance(variables, Mapping) else ())},
        },
    }


def complete_task() -> dict[str, Any]:
    """Return all completions for a task definition, which refers only to its own fields."""
    return {
        **_common_choices(LintContext()),
        "fields": {"workflow": _field_names("taskDefinition")},
        "refs": [],
        "types": {},
    } | {"outputs": {}, "workflow": {}}


def complete_handler() -> dict[str, Any]:
    names = usable(WorkflowDefinition.objects.order_by("name")).values_list("name", flat=True).distinct()
    choices = {**CHOICES, "name": list(names[:MAX_NAMES])}
    return {**complete_task(), "fields": {"workflow": _field_names("eventHandler")}, "choices": choices}


def _field_names(table: str) -> list[str]:
    return [field.name for field in TABLES[table]]


def _common_choices(known: LintContext) -> dict[str, Any]:
    return {
        "choices": CHOICES,
        "stepTypes": sorted(STEP_TYPES),
        "tasks": sorted(known.tasks or ()),
        "workflows": sorted(known.workflows or ()),
        "taskParts": ["output", "input", *TASK_FACTS],
        "runParts": [*RUN_PAYLOADS, *RUN_FACTS, "env", "secrets"],
    }


def _spot_name(spot: StepSpot) -> str:
    return type_of(spot.step) if spot.name == spot.ref else f"{type_of(spot.step)} {spot.name}"


def _name_tree(shape: PayloadShape, depth: int = 0) -> dict[str, Any]:
    """Return the known member names of a shape as nested mappings."""
    if shape.members is None or depth > MAX_DEPTH:
        return {}
    return {name: _name_tree(inner, depth + 1) for name, inner in shape.members.items()}
