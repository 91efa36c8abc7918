"""Views that search workflows and tasks. The reply has summaries, or whole documents (v2)."""

from django.http import HttpResponse

from ....engine.access.token_buckets import SEARCHES
from ....insight.runs.execution import wire_runs, wire_tasks
from ....insight.runs.search.by_tasks import runs_of_tasks
from ....insight.runs.search.result_rows import attempt_lines, run_lines
from ....models import Run
from ....models.snapshots import read_snapshot
from ..api_operation import RUN_SEARCH_QUERY, SEARCH_QUERY, ApiOperation
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..replies import Json
from ..view import ConductorRequest, ConductorView
from .search_parameters import parse_task_search, parse_workflow_search
from .summary_serializers import task_summary_document, workflow_summary_document


class WorkflowSearch(ConductorView):
    """GET /api/workflow/search: search workflows; the reply has summaries."""

    operations = {
        # Searches find only what the actor may read.
        "get": ApiOperation(
            "Search workflows",
            permission=ALLOW_ALL,
            reply=shapes.WORKFLOW_SUMMARY_PAGE,
            query=RUN_SEARCH_QUERY,
            rate=SEARCHES,
        ),
    }

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_workflow_search(request.query, request.actor)
        page = search_request.page()
        return Json(search_request.reply(page, [workflow_summary_document(run) for run in run_lines(page.ids)]))


class WorkflowSearchV2(ConductorView):
    """GET /api/workflow/search-v2: search workflows; the reply has workflows without their tasks."""

    operations = {
        "get": ApiOperation(
            "Search workflows and get them in full",
            permission=ALLOW_ALL,
            reply=shapes.WORKFLOW_PAGE,
            query=RUN_SEARCH_QUERY,
            rate=SEARCHES,
        ),
    }

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_workflow_search(request.query, request.actor)
        page = search_request.page()
        return Json(search_request.reply(page, load_workflows(page.ids)))


class WorkflowSearchByTasks(ConductorView):
    """GET /api/workflow/search-by-tasks: search workflows by their tasks; the reply has summaries."""

    operations = {
        "get": ApiOperation(
            "Search workflows by their tasks",
            permission=ALLOW_ALL,
            reply=shapes.WORKFLOW_SUMMARY_PAGE,
            query=SEARCH_QUERY,
            rate=SEARCHES,
        ),
    }

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_task_search(request.query, request.actor, hit_field="run_id")
        page = runs_of_tasks(search_request.search, search_request.start, search_request.size)
        return Json(search_request.reply(page, [workflow_summary_document(run) for run in run_lines(page.ids)]))


class WorkflowSearchByTasksV2(ConductorView):
    """GET /api/workflow/search-by-tasks-v2: search by tasks; the reply has workflows without their tasks."""

    operations = {
        "get": ApiOperation(
            "Search workflows by their tasks and get them in full",
            permission=ALLOW_ALL,
            reply=shapes.WORKFLOW_PAGE,
            query=SEARCH_QUERY,
            rate=SEARCHES,
        ),
    }

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_task_search(request.query, request.actor, hit_field="run_id")
        page = runs_of_tasks(search_request.search, search_request.start, search_request.size)
        return Json(search_request.reply(page, load_workflows(page.ids)))


class TaskSearch(ConductorView):
    """GET /api/tasks/search: search tasks; the reply has summaries."""

    operations = {
        "get": ApiOperation(
            "Search tasks",
            permission=ALLOW_ALL,
            reply=shapes.TASK_SUMMARY_PAGE,
            query=SEARCH_QUERY,
            rate=SEARCHES,
        ),
    }

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_task_search(request.query, request.actor)
        page = search_request.page()
        return Json(search_request.reply(page, [task_summary_document(attempt) for attempt in attempt_lines(page.ids)]))


class TaskSearchV2(ConductorView):
    """GET /api/tasks/search-v2: search tasks; the reply has whole tasks."""

    operations = {
        "get": ApiOperation(
            "Search tasks and get them in full",
            permission=ALLOW_ALL,
            reply=shapes.TASK_PAGE,
            query=SEARCH_QUERY,
            rate=SEARCHES,
        ),
    }

    @read_snapshot()
    def get(self, request: ConductorRequest) -> HttpResponse:
        search_request = parse_task_search(request.query, request.actor)
        page = search_request.page()
        return Json(search_request.reply(page, wire_tasks(page.ids)))


def load_workflows(ids: list[str]) -> list[dict]:
    """Return workflows without their tasks, in the order of the ids."""
    found = {each["workflowId"]: each for each in wire_runs(Run.objects.filter(pk__in=ids), with_tasks=False)}
    return [found[id] for id in ids if id in found]
