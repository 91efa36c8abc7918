"""Definitions of workflows and tasks: the lists, the pages, and saving through the engine."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Max, Model
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ..core.errors import Refused, ValidationFailed
from ..engine import definitions
from ..models import TaskDefinition, WorkflowDefinition
from .definition_form import NEW_VERSION, OVERWRITE, DefinitionForm, WorkflowEditForm
from .documents import as_file
from .json_editor import formatted
from .json_tree import tree
from .marks import ago, exact
from .outline import outline
from .read_only import ReadOnlyAdmin
from .samples import NEW_TASK, NEW_WORKFLOW


class DefinitionAdmin(ReadOnlyAdmin):
    """What workflow and task definitions have in common: list, page, editor."""

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
            "title": title, "opts": self.opts, "kind": self.kind, "may_edit": self.may_edit(request),
            "edit_url": f"{urls}_edit", "raw_url": f"{urls}_raw", **shown,
        }  # fmt: skip
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


class WorkflowDefinitionAdmin(DefinitionAdmin):
    """Workflow definitions, newest version first."""

    kind, sample = "workflow", NEW_WORKFLOW
    list_display = ("definition", "description", "owner_email", "changed", "changed_by")
    ordering = ("name", "-version")

    def more(self, row: WorkflowDefinition) -> dict[str, Any]:
        versions = WorkflowDefinition.objects.filter(name=row.name).order_by("-version")
        return {"steps": outline(row.document), "versions": versions.only("pk", "version")[:30]}

    def form_for(self, row: WorkflowDefinition, data: Any) -> Form:
        initial = {"document": formatted(row.document), "save_as": NEW_VERSION, "revision": row.revision}
        return WorkflowEditForm(data, initial=initial, version=row.version, next_version=next_version(row.name))

    def save(self, form: Form, row: WorkflowDefinition | None, by: str) -> None:
        document, reason = form.cleaned_data["document"], form.cleaned_data["reason"]
        if row is not None:
            _refuse_another_name(document, row)
            document = form.cleaned_data["document"] = {**document, "version": self._version(form, row)}
        overwrite = row is not None and form.cleaned_data["save_as"] == OVERWRITE
        definitions.save_workflow(document, by, overwrite=overwrite, reason=reason)

    def _version(self, form: Form, row: WorkflowDefinition) -> int:
        if form.cleaned_data["save_as"] == NEW_VERSION:
            return next_version(row.name)
        if form.cleaned_data["revision"] != row.revision:
            raise Refused(
                f"{row.updated_by or 'Somebody'} has changed this version meanwhile. Save yours as a new version."
            )
        return row.version


class TaskDefinitionAdmin(DefinitionAdmin):
    """Task definitions: how a task is retried, how long it may take, how many at a time."""

    kind, sample = "task", NEW_TASK
    list_display = ("definition", "description", "limits", "changed", "changed_by")
    ordering = ("name",)

    def save(self, form: Form, row: TaskDefinition | None, by: str) -> None:
        document, reason = form.cleaned_data["document"], form.cleaned_data["reason"]
        if row is not None:
            _refuse_another_name(document, row)
        definitions.save_task(document, by, overwrite=row is not None, reason=reason)

    @admin.display(description="limits")
    def limits(self, row: TaskDefinition) -> str:
        at_a_time = f"{row.concurrent_limit} at a time" if row.concurrent_limit else ""
        rate = f"{row.rate_count} in {row.rate_seconds} s" if row.rate_count else ""
        return ", ".join(filter(None, (at_a_time, rate))) or "–"


def next_version(name: str) -> int:
    """The version after the newest one."""
    return WorkflowDefinition.objects.filter(name=name).aggregate(newest=Max("version"))["newest"] + 1


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


def _refuse_another_name(document: dict[str, Any], row: Any) -> None:
    if document.get("name") != row.name:
        raise Refused(f"A definition keeps its name, {row.name}. To give it another, create a new definition.")
