"""What the screens of workflow and task definitions share: list, page, and an editor that saves through the engine."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..core.errors import Refused, ValidationFailed
from .definition_form import DefinitionForm
from .documents import as_file
from .json_editor import formatted
from .json_tree import tree
from .marks import ago, exact
from .read_only import ReadOnlyAdmin


class DefinitionAdmin(ReadOnlyAdmin):
    """Definitions: documents that people write and the engine keeps."""

    kind = ""
    sample: dict[str, Any] = {}
    list_display_links = None
    search_help_text = "Part of a name or of a description"
    search_fields = ("name", "description")

    def may_edit(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"conductor.change_{self.opts.model_name}")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may_edit(request)

    def get_urls(self) -> list[URLPattern]:
        name = self.opts.model_name
        return [
            path("<int:pk>/edit/", self.admin_site.admin_view(self.edit), name=f"{name}_edit"),
            path("<int:pk>/raw/", self.admin_site.admin_view(self.raw), name=f"{name}_raw"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        if not self.may_edit(request):
            raise PermissionDenied
        form = DefinitionForm(request.POST or None, initial={"document": formatted(self.sample)})
        if request.method == "POST" and form.is_valid() and self.saved(request, form, None):
            return self._back(form.cleaned_data["document"])
        return self._page(request, "edit", f"New {self.kind} definition", form=form)

    def edit(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The document in the editor; a refused one stays as it was typed."""
        if not self.may_edit(request):
            raise PermissionDenied
        row = self._found(request, pk)
        form = self.form_for(row, request.POST or None)
        if request.method == "POST" and form.is_valid() and self.saved(request, form, row):
            return self._back(form.cleaned_data["document"])
        return self._page(request, "edit", f"Edit {row}", form=form, row=row)

    def saved(self, request: HttpRequest, form: Form, row: Model | None) -> bool:
        """Whether the engine has kept the document; if not, the form says why."""
        try:
            self.save(form, row, request.user.get_username())
        except ValidationFailed as failed:
            form.complain(failed.complaints)
        except Refused as refused:
            form.add_error("document", refused.message)
        else:
            messages.success(request, f"The {self.kind} definition is saved.")
        return not form.errors

    def save(self, form: Form, row: Any, by: str) -> None:
        """Ask the engine to keep the document."""
        raise NotImplementedError

    def form_for(self, row: Any, data: Any) -> Form:
        """The form of an existing definition."""
        return DefinitionForm(data, initial={"document": formatted(row.document)})

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        row = self._found(request, object_id)
        return self._page(
            request, "page", str(row), row=row, tree=tree(row.document), facts=facts_of(row), **self.more(row)
        )

    def more(self, row: Any) -> dict[str, Any]:
        """What else the page shows."""
        return {}

    def raw(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The document as it is."""
        row = self._found(request, pk)
        return as_file(row.document, str(row))

    def _found(self, request: HttpRequest, pk: object) -> Any:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.model.objects.filter(pk=pk).first() if str(pk).isdecimal() else None
        if row is None:
            raise Http404(f"There is no such {self.kind} definition.")
        return row

    def _back(self, document: dict[str, Any]) -> HttpResponseRedirect:
        rows = self.model.objects.filter(name=document["name"])
        newest = rows.order_by("-updated_at", "-id").values_list("pk", flat=True).first()
        return HttpResponseRedirect(reverse(f"admin:conductor_{self.opts.model_name}_change", args=[newest]))

    def _page(self, request: HttpRequest, name: str, title: str, **shown: Any) -> TemplateResponse:
        urls = f"admin:{self.opts.model_name}"
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "kind": self.kind,
            "may_edit": self.may_edit(request),
            "edit_url": f"{urls}_edit",
            "raw_url": f"{urls}_raw",
            **shown,
        }
        return TemplateResponse(request, f"ops/definition/{name}.html", context)

    @admin.display(description="changed")
    def changed(self, row: Any) -> SafeString:
        return ago(row.updated_at or row.created_at)

    @admin.display(description="by")
    def changed_by(self, row: Any) -> str:
        return row.updated_by or row.created_by or "–"

    @admin.display(description="name")
    def definition(self, row: Any) -> SafeString:
        version = format_html(' <span class="version">v{}</span>', row.version) if hasattr(row, "version") else ""
        return format_html('<a href="{}/change/"><strong>{}</strong>{}</a>', row.pk, row.name, version)


def facts_of(row: Any) -> list[tuple[str, Any]]:
    """Who made it, who changed it, whose it is."""
    facts = [
        ("Description", row.description),
        ("Owner", row.owner_email),
        ("Created", f"{exact(row.created_at)} by {row.created_by or 'unknown'}"),
        ("Changed", f"{exact(row.updated_at)} by {row.updated_by or 'unknown'}" if row.updated_at else ""),
        ("Revision", row.revision),
    ]
    return [(name, value) for name, value in facts if value]


def refuse_another_name(document: dict[str, Any], row: Any) -> None:
    if document.get("name") != row.name:
        raise Refused(f"A definition keeps its name, {row.name}. To give it another, create a new definition.")
