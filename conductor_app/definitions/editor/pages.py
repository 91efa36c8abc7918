"""The editor of definitions: checks while the user types, drafts, review before saving, merge of conflicts."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from ...core.document.semantic_diff import semantic_changes
from ...core.errors import RequestRefused, ValidationFailed
from ...engine.access.grants import grant_to_current_actor
from ...engine.definitions import drafts
from ...insight.text_diff import diff_hunks
from ...models import DefinitionDraft
from ..error_messages import require_permission
from ..json_editor import format_json
from .definition_checks import CheckResult, check_text, checks_response
from .definition_forms import OVERWRITE, DefinitionForm


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
