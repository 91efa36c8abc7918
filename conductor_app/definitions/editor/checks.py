"""Checks of a definition while it is edited: findings with their positions, its drawing, and completions."""

import json
import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from ...core.document.differences import HOLDS_STEPS
from ...core.document.json_positions import TextPosition, TextPositions
from ...core.validation.findings import ERROR, HINT, WARNING, LintFinding
from ...events.queries import lint_handler
from ...web.forms import parse_json_value, syntax_error_text
from ..diagram.pages import draw_definition
from ..lint_context import definition_context
from ..policies import task_drawings
from ..validation import check_handler, lint_task, lint_workflow, validate_task, validate_workflow
from .queries import complete_handler, complete_task, complete_workflow

WORKFLOW, TASK, HANDLER = "workflow", "task", "event_handler"
UNKNOWN_POSITION = TextPosition(1, 0, 0)
SEVERITY_ICONS = {ERROR: "failed", WARNING: "warning", HINT: "active"}
SEVERITY_TONES = {ERROR: "failed", WARNING: "waiting", HINT: "active"}
MAX_FINDINGS = 200
INNER_STEP = re.compile(rf"\.({'|'.join(sorted(HOLDS_STEPS))})\b.*\[\d+\]")
"""The rest of a path behind a step, if it leads to a step inside it."""


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding and its position in the text."""

    finding: LintFinding
    position: TextPosition

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
    return CheckResult(document, place_findings(findings, text), complete_workflow(document, context))


def _check_task(document: dict[str, Any], text: str) -> CheckResult:
    validation_errors = validate_task(document)
    errors = [LintFinding(ERROR, "refused", each.path, each.message) for each in validation_errors]
    findings = [*errors, *lint_task(document)]
    return CheckResult(document, place_findings(findings, text), complete_task())


def _check_handler(document: dict[str, Any], text: str) -> CheckResult:
    return CheckResult(document, place_findings(lint_handler(*check_handler(document)), text), complete_handler())


CHECKS = {WORKFLOW: _check_workflow, TASK: _check_task, HANDLER: _check_handler}


def place_findings(findings: list[LintFinding], text: str) -> list[PlacedFinding]:
    """Return the findings with their positions in the text."""
    positions = TextPositions(text)
    return [PlacedFinding(each, positions.of(each.path) or UNKNOWN_POSITION) for each in findings[:MAX_FINDINGS]]


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
        picture_html = render_to_string("ops/definitions/task_drawings.html", task_drawings(result.document))
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
    picture = draw_definition(result.document or {}, can_insert=True)
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
