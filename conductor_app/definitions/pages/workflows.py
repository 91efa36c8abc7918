"""Workflow and task definitions: the lists with usage and warnings, and the pages."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Max, QuerySet
from django.forms import Form
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.permissions import TASK_DEF, WORKFLOW_DEF
from ...access.visibility import may
from ...core.definition import type_of, walk
from ...core.document.differences import HOLDS_STEPS
from ...core.errors import RequestRefused
from ...core.schemas import build_form
from ...core.validation.findings import LintFinding
from ...runs.pages.start import StartPages
from ...runs.pages.view_model import history_strip
from ...runs.queries.recent import recent_runs_of_workflows
from ...utils import clock, process_state
from ...utils.formatting import format_duration
from ...web.badges import format_count, render_pill
from ...web.documents import render_tree
from ...web.forms import format_json
from ...web.pages import BoundedChangeList
from .. import commands, validation
from ..diagram.pages import draw_definition
from ..editor.canvas import CanvasPages
from ..editor.checks import CheckResult, draw_checked, place_findings
from ..editor.pages import NEW_VERSION, OVERWRITE, DefinitionForm, EditingStart, WorkflowEditForm, require_same_name
from ..editor.step_catalog import NEW_TASK, NEW_WORKFLOW, TEMPLATES
from ..editor.task_form import TaskFormPages
from ..models import SaveRequirement, SimulationCase, TaskDefinition, WorkflowDefinition
from ..policies import policy_context, type_label
from ..queries import (
    CatalogWorkflow,
    catalog_tasks,
    catalog_workflows,
    newest_definitions,
    open_runs,
    recently_used,
    tool_options,
    version_history,
    workflows_using_task,
)
from ..schemas import input_schema
from ..simulation.commands import MAX_AT_ONCE, run_cases
from ..simulation.pages import PERMISSIONS as TRIED_BY
from ..simulation.pages import SimulatorPages
from ..sources.pages import BundlePages
from ..validation import definition_context
from .versions import BreakpointPages, ToolPages, VersionPages

_describe_model_use: process_state.Wiring[Callable[[str, int], str]] = process_state.wiring(lambda name, now: "")
FLAG_TONES = {"broken reference": "failed", "no timeout": "waiting", "no worker": "waiting", "unused": "stopped"}
FLAG_LABELS = {
    "broken reference": gettext_lazy("broken reference"),
    "no timeout": gettext_lazy("no timeout"),
    "no worker": gettext_lazy("never polled"),
    "unused": gettext_lazy("unused"),
}
FLAG_ICONS = {"broken reference": "failed", "unused": "skipped"}


def register_model_use(describe: Callable[[str, int], str]) -> None:
    """Register how the page of a workflow describes what its runs used of models, from its name and the time."""
    _describe_model_use.value = describe


class CatalogList(BoundedChangeList):
    """A page of workflow definitions with their catalog entries, which are loaded together."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        now = clock.now()
        found = catalog_workflows(self.result_list, now)
        runs = recent_runs_of_workflows([row.name for row in self.result_list])
        for row in self.result_list:
            row.catalog_entry = found.get(row.pk, CatalogWorkflow())
            row.history_strip = history_strip(runs.get(row.name, []), now)


class VersionsFilter(admin.SimpleListFilter):
    """Show only the newest version of each definition by default."""

    title, parameter_name = gettext_lazy("versions"), "versions"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("all", _("All versions")), ("archived", _("Archived"))]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield choice | ({"display": _("Newest only")} if choice["query_string"].find("versions=") < 0 else {})

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() == "all":
            return queryset
        return queryset.filter(pk__in=newest_definitions().values("pk"), archived_at__isnull=self.value() != "archived")


class ArchiveFilter(admin.SimpleListFilter):
    """Hide archived definitions by default."""

    title, parameter_name = gettext_lazy("status"), "status"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("archived", _("Archived"))]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield choice | ({"display": _("Active")} if choice["query_string"].find("status=") < 0 else {})

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(archived_at__isnull=self.value() != "archived")


class CatalogTaskList(BoundedChangeList):
    """A page of task definitions with their catalog entries."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        found = catalog_tasks(self.result_list, clock.now())
        for row in self.result_list:
            row.catalog_entry = found[row.pk]


def render_flags(flags: Mapping[str, str]) -> SafeString:
    """Return the warnings of a definition, each with its explanation as tooltip."""
    marks = (
        (why.replace("`", ""), render_pill(FLAG_TONES[flag], str(FLAG_LABELS[flag]), FLAG_ICONS.get(flag, "warning")))
        for flag, why in flags.items()
    )
    return format_html('<span class="flags">{}</span>', format_html_join(" ", '<span title="{}">{}</span>', marks))


class CatalogColumns:
    """The columns of the list of workflow definitions."""

    @admin.display(description=gettext_lazy("name"))
    def title(self, row: WorkflowDefinition) -> SafeString:
        name = format_html('<strong>{}</strong> <span class="version">v{}</span>', row.name, row.version)
        return format_html('<a href="{}/change/">{}</a> {}', row.pk, name, render_flags(row.catalog_entry.flags))

    @admin.display(description=gettext_lazy("used by"))
    def used_by(self, row: WorkflowDefinition) -> str:
        return format_count(row.catalog_entry.used_by) if row.catalog_entry.used_by else "–"

    @admin.display(description=gettext_lazy("runs 24 h"))
    def runs(self, row: WorkflowDefinition) -> str:
        count = row.catalog_entry.health.runs
        return f"{format_count(count)}{'+' if row.catalog_entry.is_capped else ''}" if count else "–"

    @admin.display(description=gettext_lazy("failed 24 h"))
    def failed(self, row: WorkflowDefinition) -> SafeString | str:
        percent = row.catalog_entry.health.failure_percent
        if percent is None:
            return "–"
        title = _("Of the runs that started in the last 24 hours and have ended")
        return format_html('<span class="{}" title="{}">{} %</span>', "late" if percent else "", title, percent)

    @admin.display(description=gettext_lazy("last runs"))
    def history(self, row: WorkflowDefinition) -> SafeString:
        return row.history_strip

    @admin.display(description=gettext_lazy("p95"))
    def p95(self, row: WorkflowDefinition) -> str:
        return "–" if row.catalog_entry.health.p95_ms is None else format_duration(row.catalog_entry.health.p95_ms)

    @admin.display(description=gettext_lazy("reason"))
    def why(self, row: WorkflowDefinition) -> str:
        return row.catalog_entry.reason or "–"


class WorkflowDefinitionAdmin(
    BreakpointPages,
    CanvasPages,
    CatalogColumns,
    BundlePages,
    StartPages,
    SimulatorPages,
    ToolPages,
    VersionPages,
):
    """Workflow definitions, newest version first."""

    kind, sample, page_template = "workflow", NEW_WORKFLOW, "workflow"
    templates = TEMPLATES
    target_type = WORKFLOW_DEF
    new_title, saved_message = (
        gettext_lazy("New workflow"),
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
            *self.tool_urls(),
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
            "checked": CheckResult(row.document, place_findings(*self._lint(row), row.document)),
            "step": _step_context(row.document, selected_ref) if selected_ref else None,
            "versions": versions,
            "newest": newest,
            "is_newest": newest.pk == row.pk,
            "next_version": newest.version + 1,
            "behind": [version for version in others if version.open_runs] if newest.pk == row.pk else [],
            "may_move": may(request.user, "conductor.change_run", row),
            "restorable": others if newest.pk == row.pk else [each for each in versions if each.row.pk == row.pk],
            "other_pk": others[0].row.pk if others else None,
            "may_try": any(may(request.user, permission, row) for permission in TRIED_BY),
            "model_usage": _describe_model_use.value(row.name, clock.now())
            if may(request.user, "conductor.view_modelusage", row)
            else "",
            "tool": tool_options(row.name, row.document) if newest.pk == row.pk else None,
            "may_start": may(request.user, "conductor.execute_workflowdefinition", row),
            **self.breakpoints_of(request, row),
        }

    @staticmethod
    def _lint(row: WorkflowDefinition) -> tuple[list[LintFinding], str]:
        errors = validation.validate_workflow(row.document)
        findings = validation.lint_workflow(row.document, definition_context([row.document]), errors)
        return findings, format_json(row.document)

    def get_drawings(self, result: Any) -> dict[str, Any]:
        return draw_checked(result) if result.document is not None else {}

    def get_contents(self, document: dict[str, Any]) -> dict[str, Any]:
        schema = build_form(input_schema(document))
        outputs = document.get("outputParameters")
        return {
            "picture": draw_definition(document),
            "inputs": [field.key for field in schema],
            "outputs": list(outputs) if isinstance(outputs, Mapping) else [],
        }

    def get_impact(self, row: WorkflowDefinition | None, document: dict[str, Any]) -> dict[str, Any]:
        if row is None:
            return {}
        cases = SimulationCase.objects.filter(workflow=row.name).order_by("name")[:MAX_AT_ONCE]
        verdicts = run_cases({**document, "name": row.name}, cases)
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
        commands.save_workflow(document, by, overwrite=overwrite, reason=reason)


def _step_context(document: dict[str, Any], ref: str) -> dict[str, Any] | None:
    """Return the facts of one step beside the diagram."""
    spot = next((spot for spot in walk(document.get("tasks")) if spot.ref == ref), None)
    if spot is None:
        return None
    kind = type_of(spot.step)
    facts = [(_("Type"), type_label(kind)), (_("Task"), spot.name), (_("Path"), spot.path)]
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


class TaskDefinitionAdmin(TaskFormPages):
    """Task definitions by name."""

    kind, sample, page_template = "task", NEW_TASK, "task"
    target_type = TASK_DEF
    new_title, saved_message = gettext_lazy("New task definition"), gettext_lazy("Task definition saved.")
    list_display = ("title", "description", "owner_email", "used_by", "limits", "updated", "changed_by")
    list_filter = (ArchiveFilter,)
    ordering = ("name",)

    def get_urls(self) -> list[URLPattern]:
        return [*self.form_urls(), *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[CatalogTaskList]:
        return CatalogTaskList

    @admin.display(description=gettext_lazy("name"))
    def title(self, row: TaskDefinition) -> SafeString:
        name = format_html('<a href="{}/change/"><strong>{}</strong></a>', row.pk, row.name)
        return format_html("{} {}", name, render_flags(row.catalog_entry.flags))

    @admin.display(description=gettext_lazy("used by"))
    def used_by(self, row: TaskDefinition) -> str:
        return format_count(row.catalog_entry.used_by) if row.catalog_entry.used_by else "–"

    def get_extra_context(self, request: HttpRequest, row: TaskDefinition) -> dict[str, Any]:
        found = place_findings(validation.lint_task(row.document), format_json(row.document))
        return {
            "used_by": workflows_using_task(row.name),
            "is_in_use": bool(recently_used([row], clock.now())),
            "checked": CheckResult(row.document, found) if found else None,
            **policy_context(row.document),
        }

    def get_drawings(self, result: Any) -> dict[str, Any]:
        return policy_context(result.document) if result.document is not None else {}

    def save_document(self, form: Form, row: TaskDefinition | None, by: str) -> None:
        document, reason = form.cleaned_data["document"], form.cleaned_data["reason"]
        if row is not None:
            require_same_name(document, row)
        commands.save_task(document, by, overwrite=row is not None, reason=reason)

    @admin.display(description=gettext_lazy("limits"))
    def limits(self, row: TaskDefinition) -> str:
        at_a_time = _("%(count)s at a time") % {"count": row.concurrent_limit} if row.concurrent_limit else ""
        facts = {"count": row.rate_count, "seconds": row.rate_seconds}
        rate = _("%(count)s in %(seconds)s s") % facts if row.rate_count else ""
        return ", ".join(filter(None, (at_a_time, rate))) or "–"
