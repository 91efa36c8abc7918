"""What is said about a definition while it is written: findings at their lines, the picture, what may follow."""

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from ...core.language.lint import ERROR, HINT, WARNING, Finding
from ...core.language.positions import Position, Positions
from ...engine import definitions
from ...insight import completion
from ...insight.definition_context import definition_context
from ...insight.handler_findings import lint_handler
from ..form_parsing import json_value
from ..json_editor import COMPLAINT
from ..pictures import picture
from .task_drawings import drawings

WORKFLOW, TASK, HANDLER = "workflow", "task", "event_handler"
NOWHERE = Position(1, 0, 0)
ICONS = {ERROR: "failed", WARNING: "warning", HINT: "active"}
TONES = {ERROR: "failed", WARNING: "waiting", HINT: "active"}
MOST = 200


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding with the place where it is shown."""

    finding: Finding
    position: Position

    @property
    def icon(self) -> str:
        return ICONS[self.finding.severity]

    @property
    def tone(self) -> str:
        return TONES[self.finding.severity]

    def as_wire(self) -> dict[str, Any]:
        """As the editor reads it."""
        said, place = self.finding, self.position
        message = said.message.replace("`", "")
        facts = {"severity": said.severity, "message": message, "written": said.written, "meant": said.meant}
        return {**facts, "line": place.line, "column": place.column, "length": place.length}


@dataclass(frozen=True, slots=True)
class Checked:
    """All that is said about a text. `document`: None where the text is no JSON object."""

    document: dict[str, Any] | None
    findings: list[Placed]
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


def checked(kind: str, text: str) -> Checked:
    """Read a text as a careful colleague would."""
    try:
        document = json_value(text, parse_constant=_refused)
    except json.JSONDecodeError as error:
        message = COMPLAINT.format(message=error.msg, line=error.lineno, column=error.colno)
        place = Position(error.lineno, max(error.colno - 1, 0), 1)
        return Checked(None, [Placed(Finding(ERROR, "no JSON", "", message), place)])
    except (RecursionError, ValueError) as error:
        return Checked(
            None,
            [
                Placed(
                    Finding(ERROR, "no JSON", "", _("This cannot be read as JSON: %(error)s.") % {"error": error}),
                    NOWHERE,
                )
            ],
        )
    if not isinstance(document, dict):
        message = _("A definition is a JSON object: it begins with { and ends with }.")
        said = Finding(ERROR, "no JSON", "", message)
        return Checked(None, [Placed(said, NOWHERE)])
    return CHECKS[kind](document, text)


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _workflow(document: dict[str, Any], text: str) -> Checked:
    known = definition_context([document])
    said = definitions.lint_workflow(document, known, definitions.validate_workflow(document))
    return Checked(document, placed(said, text), completion.complete_workflow(document, known))


def _task(document: dict[str, Any], text: str) -> Checked:
    complaints = definitions.validate_task(document)
    refused = [Finding(ERROR, "refused", each.path, each.message) for each in complaints]
    said = [*refused, *definitions.lint_task(document)]
    return Checked(document, placed(said, text), completion.complete_task())


def _handler(document: dict[str, Any], text: str) -> Checked:
    return Checked(document, placed(lint_handler(document), text), completion.complete_handler())


CHECKS = {WORKFLOW: _workflow, TASK: _task, HANDLER: _handler}


def placed(said: list[Finding], text: str) -> list[Placed]:
    """The findings with their places in the text."""
    positions = Positions(text)
    return [Placed(finding, positions.of(finding.path) or NOWHERE) for finding in said[:MOST]]


def answer(request: HttpRequest, kind: str) -> JsonResponse:
    """What the editor asks for while somebody types."""
    result = checked(kind, request.POST.get("document", ""))
    drawn = None
    if kind == WORKFLOW and result.document is not None:
        shown = {"picture": picture(result.document), "name": result.document.get("name", "")}
        drawn = render_to_string("ops/diagram.html", shown)
    elif kind == TASK and result.document is not None:
        drawn = render_to_string("ops/definition/task_drawings.html", drawings(result.document))
    return JsonResponse(
        {
            "findings": [each.as_wire() for each in result.findings],
            "list": render_to_string("ops/definition/findings.html", {"checked": result}),
            "picture": drawn,
            "known": result.known,
        }
    )
