"""The editor of definitions: checks while the user types, drafts, review before saving, merge of conflicts.

Checks of a definition while it is edited: findings with their positions, and completions for the editor.

Forms that edit a definition: its document, the version to save, and the reason.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.commands.users import grant_to_current_actor
from ...core.document.differences import HOLDS_STEPS, semantic_changes
from ...core.document.json_positions import TextPosition, TextPositions
from ...core.errors import RequestRefused, ValidationError, ValidationFailed
from ...core.validation.findings import ERROR, HINT, WARNING, LintFinding
from ...events.queries import lint_handler
from ...utils.differences import diff_hunks
from ...web.forms import JsonDocumentField, format_json, parse_json_value, syntax_error_text
from ...web.pages import require_permission
from .. import commands as definition_commands
from .. import commands as drafts
from ..diagram.pages import draw_definition
from ..models import DefinitionDraft
from ..resolved_definitions import check_handler
from . import queries as completion
from .queries import definition_context
from .task_form import task_drawings

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
    findings = definition_commands.lint_workflow(document, context, definition_commands.validate_workflow(document))
    return CheckResult(document, place_findings(findings, text), completion.complete_workflow(document, context))


def _check_task(document: dict[str, Any], text: str) -> CheckResult:
    validation_errors = definition_commands.validate_task(document)
    errors = [LintFinding(ERROR, "refused", each.path, each.message) for each in validation_errors]
    findings = [*errors, *definition_commands.lint_task(document)]
    return CheckResult(document, place_findings(findings, text), completion.complete_task())


def _check_handler(document: dict[str, Any], text: str) -> CheckResult:
    return CheckResult(
        document, place_findings(lint_handler(*check_handler(document)), text), completion.complete_handler()
    )


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


NEW_VERSION, OVERWRITE = "new", "overwrite"


class DefinitionForm(forms.Form):
    """A definition as JSON text."""

    document = JsonDocumentField(label=gettext_lazy("Definition"))
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Saved with the version and in the audit log."),
    )
    base = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    checked: CheckResult | None = None

    def show_errors(self, validation_errors: list[ValidationError]) -> None:
        """Show the errors of the engine at their lines."""
        findings = [LintFinding(ERROR, "refused", each.path, each.message) for each in validation_errors]
        self.checked = CheckResult(None, place_findings(findings, self.data.get("document", "")))
        count = len(validation_errors)
        message = ngettext("%(count)s error in this definition.", "%(count)s errors in this definition.", count)
        self.add_error("document", message % {"count": count})


class WorkflowEditForm(DefinitionForm):
    """An existing workflow definition, saved as a new version or over its version."""

    save_as = forms.ChoiceField(widget=forms.RadioSelect, label=gettext_lazy("Save as"), required=False)

    def __init__(self, *args: Any, version: int, next_version: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["save_as"].choices = [
            (
                NEW_VERSION,
                _("New version %(next)s (version %(version)s stays available)")
                % {"next": next_version, "version": version},
            ),
            (
                OVERWRITE,
                _("Overwrite version %(version)s (active runs keep the document that they started with)")
                % {"version": version},
            ),
        ]

    def clean_save_as(self) -> str:
        return self.cleaned_data["save_as"] or NEW_VERSION


@dataclass(frozen=True, slots=True)
class EditingStart:
    """Initial text of the editor. `base`: the state of the definition, to detect concurrent changes."""

    text: str
    base: str
    draft: DefinitionDraft | None = None


class EditorPages:
    """Pages of the editor. The admin of each kind of definition implements saving and comparing."""

    kind = ""
    target_type = ""
    """The type of the definitions in permissions."""
    sample: dict[str, Any] = {}
    new_title: Any = ""
    saved_message: Any = ""

    def editor_urls(self) -> list[URLPattern]:
        name, site = self.opts.model_name, self.admin_site
        return [
            path("<int:pk>/edit/", site.admin_view(self.edit), name=f"{name}_edit"),
            path("check/", site.admin_view(self.check_view), name=f"{name}_check"),
            path("draft/", site.admin_view(self.draft), name=f"{name}_draft"),
        ]

    def add_view(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        """Create a definition from the sample, or from another definition (`?like=…`)."""
        require_permission(request, self.add_permission)
        return self._handle_editor(request, None)

    def edit(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Edit a definition. A rejected document stays in the editor as it was typed."""
        require_permission(request, self.change_permission)
        return self._handle_editor(request, self.find_row(request, pk))

    def check_view(self, request: HttpRequest) -> HttpResponse:
        """Return the findings for the current text."""
        self._require_edit_permission(request)
        return checks_response(request, self.kind) if request.method == "POST" else HttpResponseNotAllowed(["POST"])

    def draft(self, request: HttpRequest) -> HttpResponse:
        """Save the text as a draft, or discard the draft."""
        self._require_edit_permission(request)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        name, by = request.GET.get("name", ""), request.user.get_username()
        if "discard" in request.POST:
            drafts.delete_draft(self.kind, name, by)
            messages.success(request, _("Draft discarded."))
            return HttpResponseRedirect(request.POST["discard"] if _is_local_path(request.POST["discard"]) else "../")
        try:
            drafts.save_draft(self.kind, name, request.POST.get("document", ""), request.POST.get("base", ""), by)
        except RequestRefused as refused:
            return JsonResponse({"message": refused.message}, status=413)
        return JsonResponse({"kept": True})

    def _require_edit_permission(self, request: HttpRequest) -> None:
        """Require the permission to create or to change definitions.

        Raises:
            PermissionDenied: when the user has neither.
        """
        if not request.user.has_perm(self.add_permission):
            require_permission(request, self.change_permission)

    def _handle_editor(self, request: HttpRequest, row: Any) -> HttpResponse:
        editing_start = self._load_editing_start(request, row)
        form = self.get_edit_form(row, request.POST or None, editing_start)
        if "canvas" in request.POST:
            return self.render_canvas(request, row, editing_start)
        if request.method != "POST":
            return self._render_editor(request, form, row, editing_start)
        if not form.is_valid():
            self._keep_draft(request, row)
            return self._render_editor(request, form, row, editing_start)
        if row is not None and form.cleaned_data["base"] not in ("", self.base_revision(row)):
            return self._render_conflict(request, form, row)
        if request.POST.get("step") == "try":
            return self._render_trial(request, form, row, editing_start)
        if request.POST.get("step") == "review":
            self._keep_draft(request, row)
            return self._render_review(request, form, row)
        name = form.cleaned_data["document"].get("name")
        is_new = row is None and not self.model.objects.filter(name=name).exists()
        if row is None and not is_new:
            require_permission(request, self.change_permission)
        if self.try_to_save(request, form, row):
            if is_new:
                grant_to_current_actor([(self.target_type, name)])
            drafts.delete_draft(self.kind, row.name if row else "", request.user.get_username())
            return self.redirect_to_saved(form.cleaned_data["document"])
        return self._render_editor(request, form, row, editing_start)

    def _render_trial(
        self, request: HttpRequest, form: DefinitionForm, row: Any, editing_start: EditingStart
    ) -> HttpResponse:
        """Show the text in the editor together with a preview of its effects. Nothing is saved."""
        self._keep_draft(request, row)
        try:
            found = self.try_document(form.cleaned_data["document"])
        except RequestRefused as refused:
            form.add_error(None, refused.message)
            found = {}
        return self._render_editor(request, form, row, editing_start, **found)

    def _load_editing_start(self, request: HttpRequest, row: Any) -> EditingStart:
        """Return the user's draft, otherwise the saved document."""
        name = row.name if row else ""
        draft = DefinitionDraft.objects.filter(kind=self.kind, name=name, author=request.user.get_username()).first()
        like = request.GET.get("like", "")
        if draft is not None and not like and "fresh" not in request.GET:
            return EditingStart(draft.text, draft.base, draft)
        if row is not None:
            return EditingStart(format_json(row.document), self.base_revision(row))
        other = self.model.objects.filter(pk=like).first() if like.isdecimal() else None
        return EditingStart(format_json(self.copy_document(other) if other else self.sample), "")

    def _keep_draft(self, request: HttpRequest, row: Any) -> None:
        """Save the submitted text as a draft, whether it is valid JSON or not."""
        text, by = request.POST.get("document", ""), request.user.get_username()
        if text and len(text) <= drafts.MAX_DRAFT_LENGTH:
            drafts.save_draft(self.kind, row.name if row else "", text, request.POST.get("base", ""), by)

    def try_to_save(self, request: HttpRequest, form: DefinitionForm, row: Model | None) -> bool:
        """Save the document. Return False if the engine rejected it; the form then has the errors."""
        try:
            self.save_document(form, row, request.user.get_username())
        except ValidationFailed as failed:
            form.show_errors(failed.validation_errors)
        except RequestRefused as refused:
            form.add_error("document", refused.message)
        else:
            messages.success(request, self.saved_message)
        return not form.errors

    def _render_editor(
        self, request: HttpRequest, form: DefinitionForm, row: Any, editing_start: EditingStart, **more: Any
    ) -> TemplateResponse:
        text = form.data.get("document", "") if form.is_bound else editing_start.text
        result = form.checked or check_text(self.kind, text)
        context = {"form": form, "row": row, "draft": None if form.is_bound else editing_start.draft, "checked": result}
        address = reverse(f"admin:{self.opts.model_name}_draft", query={"name": row.name if row else ""})
        context |= {
            "original": format_json(row.document) if row else "",
            "draft_url": address,
            **self.get_drawings(result),
            **self.get_panel(request, row, result),
        }
        title = _("Edit %(name)s") % {"name": row.name} if row else self.new_title
        return self.render_page(request, "editor", title, **context, **more)

    def _render_review(self, request: HttpRequest, form: DefinitionForm, row: Any) -> TemplateResponse:
        """Show what saving would change, as a summary and as a diff, with findings."""
        document, submitted_text = form.cleaned_data["document"], form.data["document"]
        before = row.document if row else {}
        context = {
            "form": form,
            "row": row,
            "checked": check_text(self.kind, submitted_text),
            "changes": semantic_changes(before, document) if row else None,
            "hunks": diff_hunks(format_json(before) if row else "", format_json(document)),
            **self.get_impact(row, document),
        }
        title = _("Save %(name)s") % {"name": document.get("name", "")}
        return self.render_page(request, "review", title, heading=self.new_title, **context)

    def _render_conflict(self, request: HttpRequest, form: DefinitionForm, row: Any) -> TemplateResponse:
        """Show both texts after a concurrent change, to be merged by the user."""
        self._keep_draft(request, row)
        newest = self.load_latest(row)
        context = {
            "form": form,
            "row": row,
            "saved_text": format_json(newest.document),
            "newest": newest,
            "who": newest.updated_by or newest.created_by or _("Another user"),
            "base": self.base_revision(row),
            "changes": semantic_changes(newest.document, form.cleaned_data["document"]),
        }
        return self.render_page(
            request, "conflict", _("%(name)s was changed in the meantime") % {"name": row.name}, **context
        )

    def try_document(self, document: dict[str, Any]) -> dict[str, Any]:
        """Preview the effects of a document.

        Raises:
            RequestRefused: when the engine rejects the document.
        """
        return {}

    def get_drawings(self, result: Any) -> dict[str, Any]:
        """Return the drawings beside the text."""
        return {}

    def render_canvas(self, request: HttpRequest, row: Any, editing_start: EditingStart) -> HttpResponse:
        """Apply an action of the canvas, and show the editor with the new text.

        Raises:
            Http404: when the editor of this kind has no canvas.
        """
        raise Http404

    def get_panel(self, request: HttpRequest, row: Any, result: CheckResult) -> dict[str, Any]:
        """Return the panel beside the diagram."""
        return {}

    def get_impact(self, row: Any, document: dict[str, Any]) -> dict[str, Any]:
        """Return the effects of saving that the diff does not show."""
        return {"overwrites": OVERWRITE}


def _is_local_path(address: str) -> bool:
    """Return True if the address is a path on this server."""
    return address.startswith("/") and url_has_allowed_host_and_scheme(address, allowed_hosts=None)
