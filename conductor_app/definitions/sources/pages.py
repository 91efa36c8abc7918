"""Pages of bundles, which export and import definitions, and of the drift between folders and what is here."""

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import may
from ...core.errors import Invalid, NotFound, RequestRefused
from ...core.primitives import JsonValue
from ...human_tasks.models import FormTemplate
from ...utils import clock
from ...web.badges import relative_time
from ...web.documents import json_file_response
from ...web.forms import parse_json_value
from ...web.pages import ObjectPage, Page, require_permission, require_permission_on_any
from ..editor.pages import DefinitionAdmin
from ..models import AppliedDefinition, TaskDefinition, WorkflowDefinition
from . import commands
from .commands import DriftItem, exported_document, find_drift, find_drift_of

MAX_LISTED = 200
KIND_LABELS = {
    "schemas": gettext_lazy("schema"),
    "tasks": gettext_lazy("task definition"),
    "form-templates": gettext_lazy("form template"),
    "workflows": gettext_lazy("workflow"),
    "event-handlers": gettext_lazy("event handler"),
    "schedules": gettext_lazy("schedule"),
    "queue-limits": gettext_lazy("queue limit"),
    "alerts": gettext_lazy("alert"),
    "roles": gettext_lazy("role"),
}
VIEW_PERMISSIONS = ("conductor.view_workflowdefinition", "conductor.view_taskdefinition")
CHANGE_PERMISSIONS = tuple(
    f"conductor.{verb}_{model}" for verb in ("add", "change") for model in ("workflowdefinition", "taskdefinition")
)
TEMPLATE_VIEW_PERMISSION = "conductor.view_formtemplate"
MODEL_BY_KIND: dict[str, type[Model]] = {
    commands.WORKFLOW: WorkflowDefinition,
    commands.TASK: TaskDefinition,
    commands.TEMPLATE: FormTemplate,
}
MAX_BYTES = 10_000_000
MAX_EXPORTED = 1_000


class DriftPage(Page):
    """List of the definitions that were edited or deleted since a folder has applied them, by source."""

    name, title, template = "definition_drift", gettext_lazy("Definitions from Git"), "ops/definitions/drift.html"
    permission, shows_granted_rows = "conductor.view_workflowdefinition", True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, label = clock.now(), request.GET.get("label", "").replace("\0", "")
        found = find_drift(label)
        drifted = [item for item in found if item.is_drifted]
        return {
            "label": label,
            "labels": _labels(request) if label else sorted({item.applied.label for item in found}),
            "count": len(found),
            "rows": [_drift_row(item, now) for item in drifted[:MAX_LISTED]],
            "hidden": max(len(drifted) - MAX_LISTED, 0),
        }


def _labels(request: HttpRequest) -> list[str]:
    """Return the names of the sources of the definitions that the user may read."""
    if not request.user.has_perm(DriftPage.permission):
        return sorted({item.applied.label for item in find_drift()})
    labels = AppliedDefinition.objects.order_by("label").values_list("label", flat=True).distinct()
    return list(labels[:MAX_LISTED])


def _drift_row(item: DriftItem, now: int) -> dict[str, Any]:
    return {
        "item": item,
        "kind": KIND_LABELS[item.kind.plural],
        "changed": relative_time(item.changed_at, now),
        "applied": relative_time(item.applied.applied_at, now),
        "audit": reverse("admin:conductor_auditentry_changelist", query={"q": item.applied.name}),
    }


class DriftExportPage(ObjectPage):
    """Download of a definition as it is here, for the folder that has applied it."""

    name, permission = "definition_drift_export", "conductor.view_workflowdefinition"
    shows_granted_rows = True
    route = "definition-drift/<int:pk>/"

    def get_context(self, request: HttpRequest, pk: int) -> Any:
        item = find_drift_of(pk)
        document = exported_document(item) if item else None
        if item is None or document is None:
            raise NotFound(_("No such definition."))
        return json_file_response(document, item.applied.name)


class BundleForm(forms.Form):
    """A bundle as file or text, and what to do with workflows that already exist."""

    file = forms.FileField(required=False, label=gettext_lazy("File"))
    text = forms.CharField(
        required=False, strip=False, label=gettext_lazy("or as text"), widget=forms.Textarea(attrs={"rows": 10})
    )
    how = forms.ChoiceField(
        required=False,
        initial=commands.AS_NEW_VERSIONS,
        widget=forms.RadioSelect,
        label=gettext_lazy("Changed workflows"),
        choices=[
            (commands.AS_NEW_VERSIONS, gettext_lazy("Save as new versions")),
            (
                commands.AS_GIVEN,
                gettext_lazy("Overwrite the versions named in the bundle"),
            ),
        ],
    )
    reason = forms.CharField(required=False, max_length=500, label=gettext_lazy("Reason"))

    def clean(self) -> dict[str, Any]:
        """Read the bundle from the file or from the text."""
        cleaned = super().clean() or {}
        file = cleaned.get("file")
        if file is not None:
            if file.size > MAX_BYTES:
                raise forms.ValidationError(
                    _("The file is larger than %(count)s MB.") % {"count": MAX_BYTES // 1_000_000}
                )
            cleaned["text"] = file.read().decode("utf-8-sig", "replace")
        if not (cleaned.get("text") or "").strip():
            raise forms.ValidationError(_("Choose a file, or paste a bundle."))
        return cleaned


class BundlePages(DefinitionAdmin):
    """Pages that import and export commands."""

    def bundle_urls(self) -> list[URLPattern]:
        site = self.admin_site
        return [
            path("export/", site.admin_view(self.export_definitions), name="definitions_export"),
            path("import/", site.admin_view(self.import_definitions), name="definitions_import"),
        ]

    def export_definitions(self, request: HttpRequest) -> HttpResponse:
        """Download a bundle: one workflow with everything that it uses (`?name=`), or all workflows."""
        for permission in VIEW_PERMISSIONS:
            require_permission_on_any(request, permission)
        name = request.GET.get("name")
        names = (
            [name] if name else self.get_queryset(request).order_by("name").values_list("name", flat=True).distinct()
        )
        bundle = commands.export_bundle(
            list(names[:MAX_EXPORTED]), with_templates=may(request.user, TEMPLATE_VIEW_PERMISSION)
        )
        return json_file_response(bundle, name or "definitions")

    def import_definitions(self, request: HttpRequest) -> HttpResponse:
        """Preview the import of a bundle, or import it if the form confirms the preview."""
        for permission in CHANGE_PERMISSIONS:
            require_permission_on_any(request, permission)
        form = BundleForm(request.POST or None, request.FILES or None)
        items, text = [], ""
        if request.method == "POST" and form.is_valid():
            text = form.cleaned_data["text"]
            try:
                bundle = _parse_bundle_text(text)
                _require_import_rights(request, bundle)
                if request.POST.get("step") == "take":
                    return self._import_bundle(request, form, bundle)
                items = commands.plan_import(bundle)
            except RequestRefused as refused:
                form.add_error(None, refused.message)
        context = {"form": form, "items": items, "text": text, "counts": commands.count_by_verdict(items)}
        return self.render_page(request, "import", _("Import definitions"), **context)

    def _import_bundle(self, request: HttpRequest, form: BundleForm, bundle: JsonValue) -> HttpResponse:
        cleaned = form.cleaned_data
        how = cleaned["how"] or commands.AS_NEW_VERSIONS
        result = commands.import_bundle(bundle, how, request.user.get_username(), cleaned["reason"])
        count, rejected = len(result["kept"]), result["refused"]
        message = ngettext("%(count)s definition imported.", "%(count)s definitions imported.", count)
        messages.success(request, message % {"count": count})
        if rejected:
            messages.warning(request, _("Rejected: %(names)s.") % {"names": ", ".join(rejected[:10])})
        return HttpResponseRedirect(reverse("admin:conductor_workflowdefinition_changelist"))


def _require_import_rights(request: HttpRequest, bundle: JsonValue) -> None:
    """Require the permissions to create and to change each definition of a bundle."""
    for kind, document in commands.parse_bundle(bundle):
        model = MODEL_BY_KIND[kind]
        for verb in ("add", "change"):
            require_permission(request, f"conductor.{verb}_{model._meta.model_name}", model(name=document.get("name")))


def _parse_bundle_text(text: str) -> Any:
    try:
        return parse_json_value(text)
    except json.JSONDecodeError as fault:
        facts = {"message": fault.msg, "line": fault.lineno, "column": fault.colno}
        raise Invalid(_("Invalid JSON: %(message)s at line %(line)s, column %(column)s.") % facts) from None
    except RecursionError:
        raise Invalid(_("The document is nested too deeply.")) from None
    except ValueError as fault:
        raise Invalid(_("Invalid JSON: %(error)s.") % {"error": fault}) from None
