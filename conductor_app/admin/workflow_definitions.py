"""Workflow definitions: saving makes a new version, unless it is asked to overwrite the old one."""

from typing import Any

from django.db.models import Max
from django.forms import Form

from ..core.errors import Refused
from ..engine import definitions
from ..models import WorkflowDefinition
from .definition_form import NEW_VERSION, OVERWRITE, WorkflowEditForm
from .definitions import DefinitionAdmin, refuse_another_name
from .json_editor import formatted
from .outline import outline
from .samples import NEW_WORKFLOW


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
            refuse_another_name(document, row)
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


def next_version(name: str) -> int:
    """The version after the newest one."""
    return WorkflowDefinition.objects.filter(name=name).aggregate(newest=Max("version"))["newest"] + 1
