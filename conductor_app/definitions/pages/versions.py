"""Versions, history and breakpoints of a workflow definition, and its switch as a tool."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from ...access.visibility import may, visible
from ...core.definition import walk
from ...core.document.differences import SemanticChange, semantic_changes
from ...core.errors import Conflict, NotFound, RequestRefused, ValidationFailed
from ...explanations.debugger import live_breakpoints_of
from ...runs.commands import debugging
from ...runs.models import Run
from ...runs.pages.debugger import DEBUG_PERMISSION, breakpoints_context, parse_breakpoint_form
from ...runs.pages.start import PERMISSION
from ...runs.pages.view_model import (
    REPAIRED_LABEL,
    bar_height,
    describe_run,
    durations_chart,
    longest_duration,
    results_chart,
    run_tone,
)
from ...runs.queries.recent import (
    RecentRun,
    StepCell,
    StepGrid,
    recent_runs_of_workflows,
    step_grid,
)
from ...tasks.queries.workers import builds_in_use
from ...utils import clock
from ...utils.differences import diff_hunks
from ...web.badges import format_count, format_status, status_tone
from ...web.charts import MAX_MARKERS, ChartMarker, build_markers
from ...web.forms import format_json
from ...web.pages import ObjectPage, require_permission, show_refusal
from .. import commands
from ..diagram.canvas import Diagram
from ..diagram.pages import draw_version
from ..editor.pages import DefinitionAdmin
from ..models import WorkflowDefinition
from ..policies import type_label
from ..queries import with_tool_switch

HEAD_HEIGHT = 40
MAX_VERSIONS = 200


class DefinitionHistoryPage(ObjectPage):
    """History of a workflow. The page of the definition loads it after its own content."""

    name, permission = "definition_history", "conductor.view_workflowdefinition"
    template, live_template = "ops/definitions/history_page.html", "ops/definitions/history.html"
    route = "workflows/<int:pk>/history/"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest, pk: int) -> dict[str, Any]:
        row = visible(WorkflowDefinition.objects.filter(pk=min(pk, 2**62))).first()
        if row is None:
            raise NotFound(_("No such definition."))
        now = clock.now()
        runs = recent_runs_of_workflows([row.name]).get(row.name, [])
        every_run = Run.objects.of_definition(row.name)
        builds = builds_in_use({spot.name for spot in walk(row.document.get("tasks")) if spot.name})
        markers = [*version_markers(row.name), *build_markers(builds)]
        results = results_chart(request, every_run, {"name": row.name}, markers=markers)
        return {
            "title": _("History of %(name)s") % {"name": row.name},
            "row": row,
            "charts": [results, durations_chart(results, every_run)],
            "grid": _grid_context(row, runs, now),
        }


def version_markers(name: str) -> list[ChartMarker]:
    """Return the time at which each of the newest versions was created, except for the first."""
    versions = WorkflowDefinition.objects.filter(name=name, version__gt=1).order_by("-version")
    newest = versions.values_list("created_at", "version")[:MAX_MARKERS]
    return [ChartMarker(at, f"v{version}") for at, version in newest]


def newest_version_markers(since: int) -> list[ChartMarker]:
    """Return when new versions of workflows that the actor may see were created since a time, the newest ones."""
    newest = visible(WorkflowDefinition.objects.order_by("-pk")).values_list("created_at", "name", "version")
    rows = [row for row in newest[:MAX_MARKERS] if row[0] >= since and row[2] > 1]
    return [ChartMarker(at, f"{name} v{version}") for at, name, version in rows]


def _grid_context(row: WorkflowDefinition, runs: Sequence[RecentRun], now: int) -> dict[str, Any] | None:
    if not runs:
        return None
    grid: StepGrid = step_grid(row.document, runs)
    longest = longest_duration(runs, now)
    heads = [
        {
            "address": reverse("admin:conductor_run_change", args=[run.id]),
            "title": describe_run(run, now),
            "tone": run_tone(run),
            "height": height,
            "y": HEAD_HEIGHT - height,
            "version": run.version if place == 0 or runs[place - 1].version != run.version else None,
        }
        for place, run in enumerate(runs)
        for height in [bar_height(run.duration_ms(now), longest, HEAD_HEIGHT)]
    ]
    rows = [
        {
            "ref": step.ref,
            "type": type_label(step.type),
            "cells": [_cell_context(cell, head) for cell, head in zip(step.cells, heads, strict=True)],
        }
        for step in grid.rows
    ]
    return {"heads": heads, "rows": rows, "height": HEAD_HEIGHT, "is_cut": grid.is_cut, "steps": grid.steps}


def _cell_context(cell: StepCell, head: dict[str, Any]) -> dict[str, Any]:
    """Return what the template draws for a cell. A step that was not reached has no link."""
    if not cell.status:
        return {"is_first": head["version"] is not None}
    count = f" × {format_count(cell.count)}" if cell.count > 1 else ""
    repaired = f" ({REPAIRED_LABEL})" if cell.is_repaired else ""
    return {
        "tone": "repaired" if cell.is_repaired else status_tone(cell.status),
        "title": f"{cell.task}: {format_status(cell.status)}{count}{repaired}",
        "address": head["address"],
        "task": cell.task,
        "is_first": head["version"] is not None,
    }


class VersionPages(DefinitionAdmin):
    def version_urls(self) -> list[URLPattern]:
        name, site = self.opts.model_name, self.admin_site
        return [
            path("<int:pk>/compare/", site.admin_view(self.compare), name=f"{name}_compare"),
            path("<int:pk>/restore/", site.admin_view(self.restore), name=f"{name}_restore"),
        ]

    def compare(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Compare two versions, as summary and as diff. `?with=` is the old one, `?to=` the new one."""
        row = self.find_row(request, pk)
        versions = list(WorkflowDefinition.objects.filter(name=row.name).order_by("-version")[:MAX_VERSIONS])
        by_pk = {str(version.pk): version for version in versions}
        new = by_pk.get(request.GET.get("to", ""), row)
        older = next((version for version in versions if version.version < new.version), new)
        old = by_pk.get(request.GET.get("with", ""), older)
        context: dict[str, Any] = {"row": row, "old": old, "new": new, "versions": versions}
        changes = semantic_changes(old.document, new.document)
        context |= {"changes": changes, "pictures": [_draw_version(version, changes) for version in (old, new)]}
        context |= {"hunks": diff_hunks(format_json(old.document), format_json(new.document))}
        facts = {"name": row.name, "old": old.version, "new": new.version}
        title = _("%(name)s: versions %(old)s and %(new)s") % facts
        return self.render_page(request, "compare", title, **context)

    def restore(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Save an old version's document as a new version."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row, by = self.find_row(request, pk, self.change_permission), request.user.get_username()
        reason = request.POST.get("reason", "").strip() or f"Restored version {row.version}."
        try:
            version = commands.restore_workflow(row.name, row.version, by, reason)
        except ValidationFailed as failed:
            reasons = "; ".join(each.message for each in failed.validation_errors[:3])
            messages.error(
                request,
                _("Version %(version)s is no longer valid: %(reasons)s") % {"version": row.version, "reasons": reasons},
            )
        except RequestRefused as refused:
            show_refusal(request, refused)
        else:
            messages.success(
                request, _("Restored version %(old)s as version %(new)s.") % {"new": version, "old": row.version}
            )
            row = WorkflowDefinition.objects.get(name=row.name, version=version)
        return HttpResponseRedirect(reverse("admin:conductor_workflowdefinition_change", args=[row.pk]))


def _draw_version(version: WorkflowDefinition, changes: list[SemanticChange]) -> tuple[WorkflowDefinition, Diagram]:
    """Return a version and its diagram. A step leads to its details on the page of the version."""
    page = reverse("admin:conductor_workflowdefinition_change", args=[version.pk])
    return version, draw_version(version.document, changes, lambda ref, path: f"{page}?{urlencode({'task': ref})}")


class ToolPages(DefinitionAdmin):
    """The switch that makes a workflow a tool of agents: `metadata.mcp` of its newest version."""

    def tool_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.switch_tool)
        return [path("<int:pk>/tool/", view, name="definition_tool")]

    def switch_tool(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Offer the workflow to agents as a tool, or stop that."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row, is_on = self.find_row(request, pk, self.change_permission), request.POST.get("on") == "1"
        reason = _("Offered to agents as a tool.") if is_on else _("No longer offered to agents as a tool.")
        try:
            if WorkflowDefinition.objects.filter(name=row.name, version__gt=row.version).exists():
                raise Conflict(_("Only the newest version of a workflow is a tool."))
            document = with_tool_switch(row.document, is_on=is_on)
            commands.save_workflow(document, request.user.get_username(), overwrite=True, reason=reason)
        except RequestRefused as refused:
            show_refusal(request, refused)
        else:
            messages.success(request, reason)
        return HttpResponseRedirect(f"{reverse('admin:conductor_workflowdefinition_change', args=[pk])}#tool")


class BreakpointPages(DefinitionAdmin):
    """List and forms of the breakpoints of a definition."""

    def breakpoint_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.change_breakpoints)
        return [path("<int:pk>/breakpoints/", view, name="definition_breakpoints")]

    def breakpoints_of(self, request: HttpRequest, row: WorkflowDefinition) -> dict[str, Any]:
        """Return the context of the breakpoints, or nothing if the user may not set them."""
        if not (request.user.has_perm(DEBUG_PERMISSION) and may(request.user, PERMISSION, row)):
            return {}
        found = live_breakpoints_of({"breakpoints": row.breakpoints}, clock.now())
        steps = [spot.ref for spot in walk(row.document.get("tasks")) if spot.ref]
        address = reverse("admin:definition_breakpoints", args=[row.pk])
        return {"may_debug": True, "is_open": True, **breakpoints_context(found, steps, address)}

    def change_breakpoints(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Set or remove a breakpoint."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        require_permission(request, DEBUG_PERMISSION)
        row = self.find_row(request, pk, PERMISSION)
        try:
            messages.success(request, _change_breakpoint(request, row))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(f"{reverse('admin:conductor_workflowdefinition_change', args=[pk])}#breakpoints")


def _change_breakpoint(request: HttpRequest, row: WorkflowDefinition) -> str:
    """Execute the command that the form names, and return what was done."""
    form, by = request.POST, request.user.get_username()
    if form.get("do") == "remove":
        debugging.remove_definition_breakpoint(row.name, row.version, form.get("breakpoint", ""), by)
        return _("Breakpoint removed.")
    debugging.set_definition_breakpoint(row.name, row.version, parse_breakpoint_form(form), by)
    return _("Breakpoint set. It applies to runs that start from now on.")
