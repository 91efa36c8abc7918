"""Workflow definitions. Saving creates a new version unless the user chooses to overwrite."""

from typing import Any
from urllib.parse import urlencode

from django.db.models import Max
from django.forms import Form
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...access.access_types import WORKFLOW_DEF
from ...core.document.lint import LintFinding
from ...core.document.semantic_diff import HOLDS_STEPS
from ...core.errors import RequestRefused
from ...core.step_structure import type_of
from ...core.step_tree import walk
from ...engine.definitions import definition_commands, simulation_cases
from ...insight.definitions.definition_context import definition_context
from ...insight.definitions.version_history import SAMPLE, open_runs, version_history
from ...models import SaveRequirement, SimulationCase, WorkflowDefinition
from ..ai.usage_lines import model_use_of_workflow
from ..json_editor import format_json
from ..json_tree import render_tree
from ..pictures import draw_definition
from .breakpoint_pages import BreakpointPages
from .canvas_pages import CanvasPages
from .definition_admin import DefinitionAdmin, require_same_name
from .definition_bundles import BundlePages
from .definition_checks import CheckResult, draw_checked, place_findings
from .definition_editor import EditingStart
from .definition_forms import NEW_VERSION, OVERWRITE, DefinitionForm, WorkflowEditForm
from .definition_list import CatalogColumns, CatalogList, VersionsFilter
from .definition_versions import VersionPages
from .sample_documents import NEW_WORKFLOW
from .simulator import PERMISSIONS as TRIED_BY
from .simulator import SimulatorPages
from .start_page import StartPages


class WorkflowDefinitionAdmin(
    BreakpointPages,
    CanvasPages,
    CatalogColumns,
    BundlePages,
    StartPages,
    SimulatorPages,
    VersionPages,
    DefinitionAdmin,
):
    """Workflow definitions, newest version first."""

    kind, sample, page_template = "workflow", NEW_WORKFLOW, "workflow"
    target_type = WORKFLOW_DEF
    new_title, saved_message = (
        gettext_lazy("New workflow definition"),
        gettext_lazy("Workflow definition saved."),
    )
    list_display = (
        "title",
        "description",
        "owner_email",
        "used_by",
        "runs",
        "failed",
        "history",
        "p95",
        "updated",
        "changed_by",
        "why",
    )
    list_filter = (VersionsFilter,)
    ordering = ("name", "-version")

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[CatalogList]:
        return CatalogList

    def get_urls(self) -> list[URLPattern]:
        return [
            *self.version_urls(),
            *self.start_urls(),
            *self.simulator_urls(),
            *self.bundle_urls(),
            *self.canvas_urls(),
            *self.breakpoint_urls(),
            *super().get_urls(),
        ]

    def get_extra_context(self, request: HttpRequest, row: WorkflowDefinition) -> dict[str, Any]:
        selected_ref, versions = request.GET.get("step", ""), version_history(row.name)
        newest = versions[0].row if versions else row
        others = [version for version in versions if version.row.version < row.version]
        return {
            "picture": draw_definition(
                row.document, chosen=selected_ref, link=lambda ref, path: f"?{urlencode({'step': ref})}#step"
            ),
            "checked": CheckResult(row.document, place_findings(*self._lint(row))),
            "step": _step_context(row.document, selected_ref) if selected_ref else None,
            "versions": versions,
            "sample": SAMPLE,
            "newest": newest,
            "is_newest": newest.pk == row.pk,
            "next_version": newest.version + 1,
            "behind": [version for version in others if version.open_runs] if newest.pk == row.pk else [],
            "may_move": request.user.has_perm("conductor.change_run"),
            "other_pk": others[0].row.pk if others else None,
            "may_try": any(map(request.user.has_perm, TRIED_BY)),
            "model_usage": model_use_of_workflow(row.name, clock.now())
            if request.user.has_perm("conductor.view_modelusage")
            else "",
            "may_start": request.user.has_perm("conductor.execute_workflowdefinition"),
            **self.breakpoints_of(request, row),
        }

    @staticmethod
    def _lint(row: WorkflowDefinition) -> tuple[list[LintFinding], str]:
        errors = definition_commands.validate_workflow(row.document)
        findings = definition_commands.lint_workflow(row.document, definition_context([row.document]), errors)
        return findings, format_json(row.document)

    def get_drawings(self, result: Any) -> dict[str, Any]:
        return draw_checked(result) if result.document is not None else {}

    def get_impact(self, row: WorkflowDefinition | None, document: dict[str, Any]) -> dict[str, Any]:
        if row is None:
            return {}
        cases = SimulationCase.objects.filter(workflow=row.name).order_by("name")[: simulation_cases.MAX_AT_ONCE]
        verdicts = simulation_cases.run_cases({**document, "name": row.name}, cases)
        holds = SaveRequirement.objects.filter(workflow=row.name, holds=True).exists()
        is_held = holds and any(verdict.differs for verdict in verdicts)
        return {"open_runs": open_runs(row.name).get(row.version, 0), "cases": verdicts, "is_held": is_held}

    def get_edit_form(self, row: WorkflowDefinition | None, data: Any, editing_start: EditingStart) -> DefinitionForm:
        if row is None:
            return super().get_edit_form(row, data, editing_start)
        initial = {"document": editing_start.text, "save_as": NEW_VERSION, "base": editing_start.base}
        return WorkflowEditForm(data, initial=initial, version=row.version, next_version=next_version(row.name))

    def base_revision(self, row: WorkflowDefinition) -> str:
        return f"r{row.revision}n{next_version(row.name) - 1}"

    def load_latest(self, row: WorkflowDefinition) -> WorkflowDefinition:
        versions = WorkflowDefinition.objects.filter(name=row.name)
        return max(versions, key=lambda version: (version.updated_at or version.created_at, version.version))

    def copy_document(self, row: WorkflowDefinition) -> dict[str, Any]:
        return {**super().copy_document(row), "version": 1}

    def save_document(self, form: Form, row: WorkflowDefinition | None, by: str) -> None:
        document, reason = form.cleaned_data["document"], form.cleaned_data["reason"]
        overwrite = row is not None and form.cleaned_data["save_as"] == OVERWRITE
        if row is not None:
            require_same_name(document, row)
            version = row.version if overwrite else next_version(row.name)
            document = form.cleaned_data["document"] = {**document, "version": version}
        definition_commands.save_workflow(document, by, overwrite=overwrite, reason=reason)


def _step_context(document: dict[str, Any], ref: str) -> dict[str, Any] | None:
    """Return the facts of one step beside the diagram."""
    spot = next((spot for spot in walk(document.get("tasks")) if spot.ref == ref), None)
    if spot is None:
        return None
    facts = [(_("Type"), type_of(spot.step)), (_("Task"), spot.name), (_("Path"), spot.path)]
    return {
        "ref": ref,
        "facts": facts,
        "tree": render_tree({k: v for k, v in spot.step.items() if k not in HOLDS_STEPS}),
    }


def next_version(name: str) -> int:
    """Return the number of the next version of a workflow.

    Raises:
        RequestRefused: when the workflow no longer exists.
    """
    newest = WorkflowDefinition.objects.filter(name=name).aggregate(newest=Max("version"))["newest"]
    if newest is None:
        raise RequestRefused(_("%(name)s has been deleted in the meantime.") % {"name": name})
    return newest + 1
