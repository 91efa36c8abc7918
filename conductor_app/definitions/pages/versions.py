"""The history of a workflow on its page: runs over time, and the states of its steps in the newest runs."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from ... import clock
from ...core.errors import NotFound
from ...insight.definitions.definition_activity import MAX_COUNTED, runs_by_result
from ...insight.definitions.step_history import StepCell, StepGrid, step_grid
from ...insight.runs.recent_runs import RecentRun, recent_runs_of_workflows
from ...insight.time_ranges import TimeRange
from ...models import WorkflowDefinition
from ..badges import format_count, format_status, status_tone
from ..charts import MAX_MARKERS, ChartMarker, ChartSeries, TrendChart, chosen_range, range_links
from ..object_pages import ObjectPage
from ..runs.history_strip import bar_height, describe_run, longest_duration

HEAD_HEIGHT = 40


class DefinitionHistoryPage(ObjectPage):
    """History of a workflow. The page of the definition loads it after its own content."""

    name, permission = "definition_history", "conductor.view_workflowdefinition"
    template, live_template = "ops/definition/history_page.html", "ops/definition/history.html"
    route = "workflows/<int:pk>/history/"

    def get_context(self, request: HttpRequest, **url_kwargs: Any) -> dict[str, Any]:
        row = WorkflowDefinition.objects.filter(pk=min(url_kwargs["pk"], 2**62)).first()
        if row is None:
            raise NotFound(_("No such definition."))
        now = clock.now()
        runs = recent_runs_of_workflows([row.name]).get(row.name, [])
        return {
            "title": _("History of %(name)s") % {"name": row.name},
            "row": row,
            "chart": _runs_chart(request, row.name, now),
            "grid": _grid_context(row, runs, now),
        }


def _runs_chart(request: HttpRequest, name: str, now: int) -> TrendChart:
    chosen = chosen_range(request)
    time_range = TimeRange.aligned(chosen, now)
    counts, is_cut = runs_by_result(name, time_range)
    labels = {
        "completed": (_("Completed"), "succeeded"),
        "failed": (_("Failed"), "failed"),
        "terminated": (_("Terminated"), "stopped"),
        "open": (_("Open"), "active"),
    }
    links = [
        reverse(
            "admin:conductor_run_changelist",
            query={"name": name, "started_since": start, "started_before": start + time_range.step},
        )
        for start in time_range.starts()
    ]
    return TrendChart(
        _("Started runs by result"),
        time_range,
        [ChartSeries(*labels[result], values) for result, values in counts.items()],
        markers=version_markers(name),
        links=links,
        note=_("Only the newest %(count)s runs were counted.") % {"count": format_count(MAX_COUNTED)} if is_cut else "",
        ranges=range_links(request, chosen),
    )


def version_markers(name: str) -> list[ChartMarker]:
    """Return the time at which each of the newest versions was created, except for the first."""
    versions = WorkflowDefinition.objects.filter(name=name, version__gt=1).order_by("-version")
    newest = versions.values_list("created_at", "version")[:MAX_MARKERS]
    return [ChartMarker(at, f"v{version}") for at, version in newest]


def _grid_context(row: WorkflowDefinition, runs: Sequence[RecentRun], now: int) -> dict[str, Any] | None:
    if not runs:
        return None
    grid: StepGrid = step_grid(row.document, runs)
    longest = longest_duration(runs, now)
    heads = [
        {
            "address": reverse("admin:conductor_run_change", args=[run.id]),
            "title": describe_run(run, now),
            "tone": status_tone(run.status),
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
            "type": step.type,
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
    return {
        "tone": status_tone(cell.status),
        "title": f"{cell.task}: {format_status(cell.status)}{count}",
        "address": head["address"],
        "task": cell.task,
        "is_first": head["version"] is not None,
    }
