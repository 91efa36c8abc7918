"""What the screens of workflow and task definitions share: list, page, raw document."""

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
from ...engine import definitions
from ..badges import exact_time, relative_time
from ..documents import json_file_response
from ..error_messages import require_permission
from ..json_tree import render_tree
from ..read_only import ReadOnlyAdmin
from .editor import EditingStart, EditorPages
from .form import DefinitionForm


class DefinitionAdmin(EditorPages, ReadOnlyAdmin):
    """Definitions: documents that people write and the engine keeps."""

    list_display_links = None

    class Media:
        css = {"all": ("ops/design.css",)}

    page_template = "page"
    is_archivable = True
    search_help_text = gettext_lazy("Part of a name or of a description")
    search_fields = ("name", "description")

    @property
    def change_permission(self) -> str:
        return f"conductor.change_{self.opts.model_name}"

    @property
    def view_permission(self) -> str:
        return f"conductor.view_{self.opts.model_name}"

    def may_edit(self, request: HttpRequest) -> bool:
        return request.user.has_perm(self.change_permission)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may_edit(request)

    def get_urls(self) -> list[URLPattern]:
        raw_view = path("<int:pk>/raw/", self.admin_site.admin_view(self.raw_view), name=f"{self.opts.model_name}_raw")
        archive_view = path(
            "<int:pk>/put/<str:act>/", self.admin_site.admin_view(self.archive_view), name=f"{self.opts.model_name}_put"
        )
        return [*self.editor_urls(), raw_view, archive_view, *super().get_urls()]

    def archive_view(self, request: HttpRequest, pk: int, act: str) -> HttpResponse:
        """Archive it, or take it back."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        require_permission(request, self.change_permission)
        row, by, reason = (
            self.find_row(request, pk),
            request.user.get_username(),
            request.POST.get("reason", "").strip(),
        )
        if not self.is_archivable or act not in ("away", "back"):
            raise Http404
        if act == "away":
            definitions.archive(self.model, row.name, by, reason)
            messages.success(request, _("%(name)s is archived: lists show it no more.") % {"name": row.name})
        else:
            definitions.unarchive(self.model, row.name, by, reason)
            messages.success(request, _("%(name)s is back.") % {"name": row.name})
        return HttpResponseRedirect(reverse(f"admin:conductor_{self.opts.model_name}_change", args=[pk]))

    def save_document(self, form: Form, row: Any, by: str) -> None:
        """Ask the engine to keep the document."""
        raise NotImplementedError

    def get_edit_form(self, row: Any, data: Any, editing_start: EditingStart) -> DefinitionForm:
        """The form of a definition, new or not."""
        return DefinitionForm(data, initial={"document": editing_start.text, "base": editing_start.base})

    def base_revision(self, row: Any) -> str:
        """By what is noticed that others have changed the definition."""
        return f"r{row.revision}"

    def load_latest(self, row: Any) -> Any:
        """What others have made of it."""
        return row

    def copy_document(self, row: Any) -> dict[str, Any]:
        """A document to begin another definition with."""
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
        """What else the page shows."""
        return {}

    def raw_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The document as it is."""
        row = self.find_row(request, pk)
        return json_file_response(row.document, str(row))

    def find_row(self, request: HttpRequest, pk: object) -> Any:
        """The row of the address; raises Http404."""
        require_permission(request, self.view_permission)
        row = self.model.objects.filter(pk=pk).first() if str(pk).isdecimal() and len(str(pk)) < 19 else None
        if row is None:
            raise Http404(_("There is no such definition."))
        return row

    def redirect_to_saved(self, document: dict[str, Any]) -> HttpResponseRedirect:
        """To the page of what was saved last under the document's name."""
        rows = self.model.objects.filter(name=document["name"])
        newest = rows.order_by("-updated_at", "-id").values_list("pk", flat=True).first()
        return HttpResponseRedirect(reverse(f"admin:conductor_{self.opts.model_name}_change", args=[newest]))

    def render_page(self, request: HttpRequest, name: str, title: str, **extra_context: Any) -> TemplateResponse:
        """One of the pages under `templates/ops/definition`."""
        urls = f"admin:{self.opts.model_name}"
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "kind": self.kind,
            "may_edit": self.may_edit(request),
            "is_archivable": self.is_archivable,
            "put_url": f"{urls}_put",
            "csp_nonce": request.csp_nonce,
            **{f"{verb}_url": f"{urls}_{verb}" for verb in ("edit", "raw", "check")},
            **extra_context,
        }
        return TemplateResponse(request, f"ops/definition/{name}.html", context)

    @admin.display(description=gettext_lazy("changed"))
    def changed(self, row: Any) -> SafeString:
        return relative_time(row.updated_at or row.created_at)

    @admin.display(description=gettext_lazy("by"))
    def changed_by(self, row: Any) -> str:
        return row.updated_by or row.created_by or "–"

    @admin.display(description=gettext_lazy("name"))
    def definition(self, row: Any) -> SafeString:
        version = format_html(' <span class="version">v{}</span>', row.version) if hasattr(row, "version") else ""
        return format_html('<a href="{}/change/"><strong>{}</strong>{}</a>', row.pk, row.name, version)


def definition_facts(row: Any) -> list[tuple[str, Any]]:
    """Who made it, who changed it, whose it is."""
    facts = [
        (_("Description"), getattr(row, "description", "")),
        (_("Owner"), getattr(row, "owner_email", "")),
        (_("Created"), _format_change(row.created_at, row.created_by)),
        (_("Changed"), _format_change(row.updated_at, row.updated_by) if row.updated_at else ""),
        (_("Revision"), row.revision),
    ]
    return [(name, value) for name, value in facts if value]


def _format_change(at: int, by: str) -> str:
    return _("%(moment)s by %(name)s") % {"moment": exact_time(at), "name": by or _("unknown")}


def require_same_name(document: dict[str, Any], row: Any) -> None:
    """A definition keeps its name; raises Refused."""
    if document.get("name") != row.name:
        message = _("A definition keeps its name, %(name)s. To give it another, create a new definition.")
        raise RequestRefused(message % {"name": row.name})
