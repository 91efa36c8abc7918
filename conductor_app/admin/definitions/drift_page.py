"""Drift: the definitions that folders have applied, and what was edited here since; each edit can be exported."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...core.errors import NotFound
from ...engine.definitions.source_drift import DriftItem, exported_document, find_drift, find_drift_of
from ...models import AppliedDefinition
from ..badges import relative_time
from ..documents import json_file_response
from ..object_pages import ObjectPage
from ..pages import Page

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


class DriftPage(Page):
    """List of the definitions that were edited or deleted since a folder has applied them, by source."""

    name, title, template = "definition_drift", gettext_lazy("Definitions from Git"), "ops/definition/drift.html"
    permission = "conductor.view_workflowdefinition"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        now, label = clock.now(), request.GET.get("label", "").replace("\0", "")
        found = find_drift(label)
        drifted = [item for item in found if item.is_drifted]
        labels = AppliedDefinition.objects.order_by("label").values_list("label", flat=True).distinct()
        return {
            "label": label,
            "labels": list(labels[:MAX_LISTED]) if label else sorted({item.applied.label for item in found}),
            "count": len(found),
            "rows": [_drift_row(item, now) for item in drifted[:MAX_LISTED]],
            "hidden": max(len(drifted) - MAX_LISTED, 0),
        }


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
    route = "definition-drift/<int:pk>/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> Any:
        item = find_drift_of(url_kwargs["pk"])
        document = exported_document(item) if item else None
        if item is None or document is None:
            raise NotFound(_("No such definition."))
        return _download(item, document)


def _download(item: DriftItem, document: dict[str, Any]) -> HttpResponse:
    return json_file_response(document, item.applied.name)
