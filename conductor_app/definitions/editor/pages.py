"""The admin of definitions: their pages, and the editor with drafts, review before saving and merge of conflicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.commands.users import grant_to_current_actor
from ...access.visibility import may, visible
from ...core.document.differences import semantic_changes
from ...core.errors import RequestRefused, ValidationError, ValidationFailed
from ...core.validation.findings import ERROR, REFUSED, LintFinding
from ...utils.differences import diff_hunks
from ...utils.formatting import LazyText
from ...web.badges import exact_time, relative_time
from ...web.documents import json_file_response, render_tree
from ...web.forms import JsonDocumentField, format_json, parse_json_value
from ...web.pages import GrantedRowsAdmin, require_permission, require_permission_on_any
from .. import commands
from ..models import DefinitionDraft
from .checks import CheckResult, check_text, checks_response, place_findings
from .step_catalog import WorkflowTemplate

NEW_VERSION, OVERWRITE = "new", "overwrite"


class DefinitionForm(forms.Form):
    """A definition as JSON text."""

    document = JsonDocumentField(label=gettext_lazy("Definition"))
    reason = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Stored in the audit log."),
    )
    base = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    checked: CheckResult | None = None

    def show_errors(self, validation_errors: list[ValidationError]) -> None:
        """Show the errors of the engine at their lines."""
        findings = [LintFinding(ERROR, REFUSED, each.path, each.message) for each in validation_errors]
        document = self.cleaned_data["document"]
        placed = place_findings(findings, self.data.get("document", ""), document if "tasks" in document else None)
        self.checked = CheckResult(None, placed)
        count = len(validation_errors)
        message = ngettext("%(count)s error in this definition.", "%(count)s errors in this definition.", count)
        self.add_error("document", message % {"count": count})


class WorkflowEditForm(DefinitionForm):
    """An existing workflow definition, saved as a new version or over its version."""

    def __init__(self, *args: Any, version: int, next_version: int, **options: Any) -> None:
        super().__init__(*args, **options)
        facts = {"next": next_version, "version": version}
        new = _("New version %(next)s (version %(version)s stays available)") % facts
        overwrite = _("Overwrite version %(version)s (active runs keep the document that they started with)") % facts
        choices = [(NEW_VERSION, new), (OVERWRITE, overwrite)]
        self.fields["save_as"] = forms.ChoiceField(
            choices=choices, widget=forms.RadioSelect, label=_("Save as"), required=False
        )

    def clean_save_as(self) -> str:
        return self.cleaned_data["save_as"] or NEW_VERSION


@dataclass(frozen=True, slots=True)
class EditingStart:
    """Initial text of the editor. `base`: the state of the definition, to detect concurrent changes."""

    text: str
    base: str
    draft: DefinitionDraft | None = None


class DefinitionAdmin(GrantedRowsAdmin):
    """Admin of definitions: documents that users edit and the engine stores.

    The admin of each kind implements saving and comparing.
    """

    list_display_links = None

    class Media:
        css = {"all": ("ops/definitions.css", "ops/chart.css")}

    kind = ""
    target_type = ""
    sample: dict[str, Any] = {}
    templates: Mapping[str, WorkflowTemplate] = {}
    """What a new definition can begin with, by name."""
    new_title: str | LazyText = ""
    saved_message: str | LazyText = ""
    page_template = "page"
    is_archivable = True
    search_help_text = gettext_lazy("Search name or description")
    search_fields = ("name", "description")

    @property
    def change_permission(self) -> str:
        return f"conductor.change_{self.opts.model_name}"

    @property
    def view_permission(self) -> str:
        return f"conductor.view_{self.opts.model_name}"

    @property
    def add_permission(self) -> str:
        return self.change_permission.replace(".change_", ".add_")

    def may_edit(self, request: HttpRequest, row: Model | None = None) -> bool:
        return may(request.user, self.change_permission, row)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return may(request.user, self.view_permission, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may(request.user, self.add_permission)

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """Return what the sidebar of every page needs: whether the user may open the list."""
        return {"view": self.has_view_permission(request)}

    def get_urls(self) -> list[URLPattern]:
        name, view = self.opts.model_name, self.admin_site.admin_view
        return [
            path("<int:pk>/edit/", view(self.edit), name=f"{name}_edit"),
            path("check/", view(self.check_view), name=f"{name}_check"),
            path("draft/", view(self.draft), name=f"{name}_draft"),
            path("<int:pk>/raw/", view(self.raw_view), name=f"{name}_raw"),
            *(
                path(f"<int:pk>/{action}/", view(self.archive_view), {"action": action}, name=f"{name}_{action}")
                for action in ("archive", "unarchive")
            ),
            *super().get_urls(),
        ]

    def archive_view(self, request: HttpRequest, pk: int, action: str) -> HttpResponse:
        """Archive or unarchive the definition.

        Raises:
            Http404: when definitions of this kind cannot be archived.
        """
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row, by = self.find_row(request, pk, self.change_permission), request.user.get_username()
        reason = request.POST.get("reason", "").strip()
        if not self.is_archivable:
            raise Http404
        if action == "archive":
            commands.archive(self.model, row.name, by, reason)
            messages.success(request, _("%(name)s archived. Lists no longer show it.") % {"name": row.name})
        else:
            commands.unarchive(self.model, row.name, by, reason)
            messages.success(request, _("%(name)s restored from the archive.") % {"name": row.name})
        return HttpResponseRedirect(reverse(f"admin:conductor_{self.opts.model_name}_change", args=[pk]))

    def save_document(self, form: DefinitionForm, row: Any, by: str) -> None:
        """Send the document to the engine."""
        raise NotImplementedError

    def get_edit_form(self, row: Any, data: Any, editing_start: EditingStart) -> DefinitionForm:
        """Return the form that edits a definition. `row` is None for a new one."""
        return DefinitionForm(data, initial={"document": editing_start.text, "base": editing_start.base})

    def base_revision(self, row: Any) -> str:
        """Return the state of the definition at the start of editing, to detect concurrent changes."""
        return f"r{row.revision}"

    def load_latest(self, row: Any) -> Any:
        """Return the current state of the definition."""
        return row

    def copy_document(self, row: Any) -> dict[str, Any]:
        return {**row.document, "name": f"{row.name}_copy"}

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        row = self.find_row(request, object_id)
        extra_context = {
            "row": row,
            "tree": render_tree(row.document),
            "facts": definition_facts(row),
            **self.get_extra_context(request, row),
        }
        return self.render_page(request, self.page_template, str(row), **extra_context)

    def get_extra_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return {}

    def raw_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Download the document as JSON."""
        row = self.find_row(request, pk)
        return json_file_response(row.document, str(row))

    def find_row(self, request: HttpRequest, pk: object, permission: str = "") -> Any:
        """Return the row of the address. `permission`: what the user needs on it, besides the permission to view it.

        Raises:
            PermissionDenied: when the user lacks a permission.
            Http404: when there is no such definition that the user may view.
        """
        for each in filter(None, (permission, self.view_permission)):
            require_permission_on_any(request, each)
        rows = visible(self.model.objects.all())
        row = rows.filter(pk=pk).first() if str(pk).isdecimal() and len(str(pk)) < 19 else None
        if row is None:
            raise Http404(_("No such definition."))
        if permission:
            require_permission(request, permission, row)
        return row

    def redirect_to_saved(self, document: dict[str, Any]) -> HttpResponseRedirect:
        """Redirect to the page of the latest definition with the document's name."""
        rows = self.model.objects.filter(name=document["name"])
        newest = rows.order_by("-updated_at", "-id").values_list("pk", flat=True).first()
        return HttpResponseRedirect(reverse(f"admin:conductor_{self.opts.model_name}_change", args=[newest]))

    def render_page(
        self, request: HttpRequest, name: str, title: str | LazyText, **extra_context: Any
    ) -> TemplateResponse:
        """Render one of the templates in `templates/ops/definition`."""
        urls = f"admin:{self.opts.model_name}"
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "kind": self.kind,
            "may_edit": self.may_edit(request, extra_context.get("row")),
            "is_archivable": self.is_archivable,
            **{f"{verb}_url": f"{urls}_{verb}" for verb in ("edit", "raw", "check", "archive", "unarchive")},
            **extra_context,
        }
        return TemplateResponse(request, f"ops/definitions/{name}.html", context)

    @admin.display(description=gettext_lazy("updated"))
    def updated(self, row: Any) -> SafeString:
        return relative_time(row.updated_at or row.created_at)

    @admin.display(description=gettext_lazy("author"))
    def changed_by(self, row: Any) -> str:
        return row.updated_by or row.created_by or "–"

    @admin.display(description=gettext_lazy("name"))
    def definition(self, row: Any) -> SafeString:
        version = format_html(' <span class="version">v{}</span>', row.version) if hasattr(row, "version") else ""
        return format_html('<a href="{}/change/"><strong>{}</strong>{}</a>', row.pk, row.name, version)

    def add_view(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        """Create a definition from the sample, or from another definition (`?like=…`)."""
        require_permission_on_any(request, self.add_permission)
        return self._handle_editor(request, None)

    def edit(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Edit a definition. A rejected document stays in the editor as it was typed."""
        return self._handle_editor(request, self.find_row(request, pk, self.change_permission))

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
            commands.delete_draft(self.kind, name, by)
            messages.success(request, _("Draft discarded."))
            return HttpResponseRedirect(request.POST["discard"] if _is_local_path(request.POST["discard"]) else "../")
        try:
            commands.save_draft(self.kind, name, request.POST.get("document", ""), request.POST.get("base", ""), by)
        except RequestRefused as refused:
            return JsonResponse({"message": refused.message}, status=413)
        return JsonResponse({"kept": True})

    def _require_edit_permission(self, request: HttpRequest) -> None:
        """Require the permission to create or to change any definition."""
        if not may(request.user, self.add_permission):
            require_permission_on_any(request, self.change_permission)

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
        if request.POST.get("step") == "test":
            return self.redirect_to_test(row, has_draft=self._keep_draft(request, row))
        if row is not None and form.cleaned_data["base"] not in ("", self.base_revision(row)):
            return self._render_conflict(request, form, row)
        if request.POST.get("step") == "try":
            return self._render_trial(request, form, row, editing_start)
        if request.POST.get("step") == "review":
            self._keep_draft(request, row)
            return self._render_review(request, form, row)
        name = form.cleaned_data["document"].get("name")
        is_new = row is None and not self.model.objects.filter(name=name).exists()
        if row is None:
            self._keep_draft(request, row)
            permission = self.add_permission if is_new else self.change_permission
            require_permission(request, permission, self.model(name=name))
        if self.try_to_save(request, form, row):
            if is_new:
                grant_to_current_actor([(self.target_type, name)])
            commands.delete_draft(self.kind, row.name if row else "", request.user.get_username())
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
        """Return the user's draft, or the named draft of another author; otherwise the saved document."""
        name = row.name if row else ""
        if (author := request.GET.get("draft", "")) and (other := self._find_draft_of(request, author, row)):
            return EditingStart(other.text, other.base)
        draft = DefinitionDraft.objects.filter(kind=self.kind, name=name, author=request.user.get_username()).first()
        like, template = request.GET.get("like", ""), self.templates.get(request.GET.get("template", ""))
        if draft is not None and not like and template is None and "fresh" not in request.GET:
            return EditingStart(draft.text, draft.base, draft)
        if row is not None:
            return EditingStart(format_json(row.document), self.base_revision(row))
        other = visible(self.model.objects.filter(pk=like)).first() if like.isdecimal() else None
        sample = template.document() if template else self.sample
        return EditingStart(format_json(self.copy_document(other) if other else sample), "")

    def _find_draft_of(self, request: HttpRequest, author: str, row: Any) -> DefinitionDraft | None:
        """Return an author's draft of a definition that the user may change, or create under this name."""
        name = row.name if row else request.GET.get("name", "")
        if row is None and not may(request.user, self.add_permission, self.model(name=name)):
            return None
        return DefinitionDraft.objects.filter(kind=self.kind, name=name, author=author).first()

    def _keep_draft(self, request: HttpRequest, row: Any) -> bool:
        """Save the submitted text as a draft, whether it is valid JSON or not. Return False if it changes nothing."""
        text, by = request.POST.get("document", ""), request.user.get_username()
        if row is not None and _is_document(text, row.document):
            commands.delete_draft(self.kind, row.name, by)
            return False
        if text and len(text) <= commands.MAX_DRAFT_LENGTH:
            commands.save_draft(self.kind, row.name if row else "", text, request.POST.get("base", ""), by)
        return True

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
            "templates": [] if row or form.is_bound or editing_start.draft else list(self.templates.values()),
            "template": request.GET.get("template", ""),
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
            "hunks": diff_hunks(format_json(before), format_json(document)) if row else [],
            **({} if row else {"tree": render_tree(document), **self.get_contents(document)}),
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

    def redirect_to_test(self, row: Any, *, has_draft: bool = True) -> HttpResponse:
        """Redirect to the test of the draft, or of the saved definition if there is none.

        Raises:
            Http404: when definitions of this kind cannot be tested.
        """
        raise Http404

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

    def get_contents(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return what a new definition contains, for its review."""
        return {}

    def get_impact(self, row: Any, document: dict[str, Any]) -> dict[str, Any]:
        """Return the effects of saving that the diff does not show."""
        return {"overwrites": OVERWRITE}


def _is_document(text: str, document: dict[str, Any]) -> bool:
    """Return True if a text is this document in JSON."""
    try:
        return bool(parse_json_value(text) == document)
    except (ValueError, RecursionError):
        return False


def _is_local_path(address: str) -> bool:
    return address.startswith("/") and url_has_allowed_host_and_scheme(address, allowed_hosts=None)


def definition_facts(row: Any) -> list[tuple[str, Any]]:
    """Return description, owner, and who created and changed the definition."""
    facts = [
        (_("Description"), getattr(row, "description", "")),
        (_("Owner"), getattr(row, "owner_email", "")),
        (_("Created"), _format_change(row.created_at, row.created_by)),
        (_("Updated"), _format_change(row.updated_at, row.updated_by) if row.updated_at else ""),
        (_("Revision"), row.revision),
    ]
    return [(name, value) for name, value in facts if value]


def _format_change(at: int, by: str) -> str:
    return _("%(time)s by %(name)s") % {"time": exact_time(at), "name": by or _("unknown")}


def require_same_name(document: dict[str, Any], row: Any) -> None:
    """Raise RequestRefused unless the document keeps the name of its definition."""
    if document.get("name") != row.name:
        message = _("The name %(name)s cannot be changed. Create a new definition instead.")
        raise RequestRefused(message % {"name": row.name})
