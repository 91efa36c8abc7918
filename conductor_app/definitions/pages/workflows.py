"""Shared parts of the admins of workflow, task and event handler definitions: list, page, raw document."""

from typing import Any

from django.contrib import admin, messages
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import RequestRefused
from ...engine.definitions import definition_commands
from ..badges import exact_time, relative_time
from ..documents import json_file_response
from ..error_messages import require_permission
from ..json_tree import render_tree
from ..read_only import ReadOnlyAdmin
from .definition_editor import EditingStart, EditorPages
from .definition_forms import DefinitionForm


class DefinitionAdmin(EditorPages, ReadOnlyAdmin):
    """Admin of definitions: documents that users edit and the engine stores."""

    list_display_links = None

    class Media:
        css = {"all": ("ops/definitions.css", "ops/chart.css")}

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

    def may_edit(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.change_permission)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.add_permission)

    def get_urls(self) -> list[URLPattern]:
        raw_view = path("<int:pk>/raw/", self.admin_site.admin_view(self.raw_view), name=f"{self.opts.model_name}_raw")
        archive = [
            path(
                f"<int:pk>/{action}/",
                self.admin_site.admin_view(self.archive_view),
                {"action": action},
                name=f"{self.opts.model_name}_{action}",
            )
            for action in ("archive", "unarchive")
        ]
        return [*self.editor_urls(), raw_view, *archive, *super().get_urls()]

    def archive_view(self, request: HttpRequest, pk: int, action: str) -> HttpResponse:
        """Archive or unarchive the definition.

        Raises:
            Http404: when definitions of this kind cannot be archived.
        """
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        require_permission(request, self.change_permission)
        row, by, reason = (
            self.find_row(request, pk),
            request.user.get_username(),
            request.POST.get("reason", "").strip(),
        )
        if not self.is_archivable:
            raise Http404
        if action == "archive":
            definition_commands.archive(self.model, row.name, by, reason)
            messages.success(request, _("%(name)s archived. Lists no longer show it.") % {"name": row.name})
        else:
            definition_commands.unarchive(self.model, row.name, by, reason)
            messages.success(request, _("%(name)s unarchived.") % {"name": row.name})
        return HttpResponseRedirect(reverse(f"admin:conductor_{self.opts.model_name}_change", args=[pk]))

    def save_document(self, form: Form, row: Any, by: str) -> None:
        """Send the document to the engine.

        Raises:
            NotImplementedError: when the subclass does not implement it.
        """
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
        """Return a copy of the document for a new definition."""
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
        """Return additional context of the page."""
        return {}

    def raw_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Download the document as JSON."""
        row = self.find_row(request, pk)
        return json_file_response(row.document, str(row))

    def find_row(self, request: HttpRequest, pk: object) -> Any:
        """Return the row of the address.

        Raises:
            Http404: when there is no such definition.
        """
        require_permission(request, self.view_permission)
        row = self.model.objects.filter(pk=pk).first() if str(pk).isdecimal() and len(str(pk)) < 19 else None
        if row is None:
            raise Http404(_("No such definition."))
        return row

    def redirect_to_saved(self, document: dict[str, Any]) -> HttpResponseRedirect:
        """Redirect to the page of the latest definition with the document's name."""
        rows = self.model.objects.filter(name=document["name"])
        newest = rows.order_by("-updated_at", "-id").values_list("pk", flat=True).first()
        return HttpResponseRedirect(reverse(f"admin:conductor_{self.opts.model_name}_change", args=[newest]))

    def render_page(self, request: HttpRequest, name: str, title: str, **extra_context: Any) -> TemplateResponse:
        """Render one of the templates in `templates/ops/definition`."""
        urls = f"admin:{self.opts.model_name}"
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "kind": self.kind,
            "may_edit": self.may_edit(request),
            "is_archivable": self.is_archivable,
            "csp_nonce": request.csp_nonce,
            **{f"{verb}_url": f"{urls}_{verb}" for verb in ("edit", "raw", "check", "archive", "unarchive")},
            **extra_context,
        }
        return TemplateResponse(request, f"ops/definition/{name}.html", context)

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
    """Check that the document keeps the name of its definition.

    Raises:
        RequestRefused: when the name differs.
    """
    if document.get("name") != row.name:
        message = _("The name %(name)s cannot be changed. Create a new definition instead.")
        raise RequestRefused(message % {"name": row.name})
