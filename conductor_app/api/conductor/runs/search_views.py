"""Views that search workflows and tasks. The reply has summaries, or whole documents (v2)."""

from typing import Any

from django.http import HttpResponse

from ....engine.access.token_buckets import SEARCHES
from ....insight.runs.execution import wire_runs, wire_tasks
from ....insight.runs.search.by_tasks import runs_of_tasks
from ....insight.runs.search.result_rows import attempt_lines, run_lines
from ....models import Run
from ....models.snapshots import read_snapshot
from ..api_operation import RUN_SEARCH_QUERY, SEARCH_QUERY, ApiOperation, Shape
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..replies import Json
from ..view import ConductorRequest, ConductorView
from .search_parameters import parse_task_search, parse_workflow_search
from .summary_serializers import task_summary_document, workflow_summary_document


def search_operations(summary: str, reply: Shape, query: dict[str, type] = SEARCH_QUERY) -> dict[str, ApiOperation]:
    """Return the operation of a search. Every caller may search, and finds only what the caller may read."""
    return {"get": ApiOperation(summary, permission=ALLOW_ALL, reply=reply, query=query, rate=SEARCHES)}


def run_summaries(ids: list[str]) -> list[dict[str, Any]]:
    """Return the summaries of workflows, in the order of the ids."""
    return [workflow_summary_document(run) for run in run_lines(ids)]


def load_workflows(ids: list[str]) -> list[dict[str, Any]]:
    """Return workflows without their tasks, in the order of the ids."""
    found = {each["workflowId"]: each for each in wire_runs(Run.objects.filter(pk__in=ids), with_tasks=False)}
    return [found[id] for id in ids if id in found]


def task_summaries(ids: list[str]) -> list[dict[str, Any]]:
    """Return the summaries of tasks, in the order of the ids."""
    return [task_summary_document(attempt) for attempt in attempt_lines(ids)]


class WorkflowSearch(ConductorView):
    """GET /api/workflow/search: search workflows; the reply has summaries."""

    operations = search_operations("Search workflows", shapes.WORKFLOW_SUMMARY_PAGE, RUN_SEARCH_QUERY)
    load_results = staticmethod(run_summaries)

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_workflow_search(request.query, request.actor)
        page = search_request.page()
        return Json(search_request.reply(page, self.load_results(page.ids)))


class WorkflowSearchV2(WorkflowSearch):
    """GET /api/workflow/search-v2: search workflows; the reply has workflows without their tasks."""

    operations = search_operations("Search workflows and get them in full", shapes.WORKFLOW_PAGE, RUN_SEARCH_QUERY)
    load_results = staticmethod(load_workflows)


class WorkflowSearchByTasks(ConductorView):
    """GET /api/workflow/search-by-tasks: search workflows by their tasks; the reply has summaries."""

    operations = search_operations("Search workflows by their tasks", shapes.WORKFLOW_SUMMARY_PAGE)
    load_results = staticmethod(run_summaries)

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_task_search(request.query, request.actor, hit_field="run_id")
        page = runs_of_tasks(search_request.search, search_request.start, search_request.size)
        return Json(search_request.reply(page, self.load_results(page.ids)))


class WorkflowSearchByTasksV2(WorkflowSearchByTasks):
    """GET /api/workflow/search-by-tasks-v2: search by tasks; the reply has workflows without their tasks."""

    operations = search_operations("Search workflows by their tasks and get them in full", shapes.WORKFLOW_PAGE)
    load_results = staticmethod(load_workflows)


class TaskSearch(ConductorView):
    """GET /api/tasks/search: search tasks; the reply has summaries."""

    operations = search_operations("Search tasks", shapes.TASK_SUMMARY_PAGE)
    load_results = staticmethod(task_summaries)

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_task_search(request.query, request.actor)
        page = search_request.page()
        return Json(search_request.reply(page, self.load_results(page.ids)))


class TaskSearchV2(TaskSearch):
    """GET /api/tasks/search-v2: search tasks; the reply has whole tasks."""

    operations = search_operations("Search tasks and get them in full", shapes.TASK_PAGE)
    load_results = staticmethod(wire_tasks)
