"""Views of the scheduler: upcoming slots, executions, and commands on all schedules."""

from django.http import HttpResponse

from .... import clock
from ....access.access_types import SCHEDULE
from ....access.permissions import filter_readable
from ....core.document.checks.values import IntegerOf, ListOf, MapOf, read_text
from ....core.errors import Invalid
from ....engine import schedules
from ....engine.access.token_buckets import SEARCHES
from ..api_operation import PAGE_QUERY, PLAIN_TEXT, ApiOperation
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY, ALLOW_ALL
from ..permissions import can_run_schedule
from ..query_parameters import QueryParameters
from ..replies import Json, PlainText
from ..view import ConductorRequest, ConductorView
from .schedule_search import find_executions, order_rows
from .schedule_serializers import wire_execution
from .schedule_views import parse_page

MAX_TIMES = 5
SORT_COLUMNS = {"scheduledTime": "slot_at", "executionTime": "executed_at", "scheduleName": "schedule_name",
            "workflowName": "workflow_name", "state": "state"}  # fmt: skip
DONE_REPLY = {"status": "done"}


class NextFewSchedules(ConductorView):
    """GET /api/scheduler/nextFewSchedules: list the next times of a cron expression."""

    operations = {
        "get": ApiOperation(
            "List the next start times of a cron expression",
            permission=ALLOW_ALL,
            reply=ListOf(IntegerOf(64)),
            query={
                "cronExpression!": str,
                "zoneId": str,
                "limit": int,
                "scheduleStartTime": int,
                "scheduleEndTime": int,
            },
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        times = schedules.next_times(
            query.required("cronExpression"),
            query.text("zoneId", "UTC"),
            starts_at=parse_time(query, "scheduleStartTime"),
            ends_at=parse_time(query, "scheduleEndTime"),
            limit=min(query.integer("limit", MAX_TIMES), MAX_TIMES),
        )
        return Json(times)


def parse_time(query: QueryParameters, name: str) -> int | None:
    """Return a time in epoch milliseconds, or None if the parameter is absent."""
    return query.integer(name, 0, bits=64) or None


class ScheduleRun(ConductorView):
    """POST /api/scheduler/schedules/{name}/run: start the schedule's workflow now; its id."""

    operations = {
        "post": ApiOperation(
            "Run a schedule now", permission=can_run_schedule, reply=PLAIN_TEXT, query={"reason": str}
        ),
    }

    def post(self, request: ConductorRequest, name: str) -> HttpResponse:
        return PlainText(schedules.run_now(name, request.actor.name, request.query.text("reason")))


class ScheduleBackfill(ConductorView):
    """POST /api/scheduler/schedules/{name}/backfill: execute the slots of a past period."""

    operations = {
        "post": ApiOperation(
            "Start the runs that a schedule missed",
            permission=can_run_schedule,
            reply=shapes.BACKFILL,
            query={"startTime!": int, "endTime": int, "reason": str},
        ),
    }

    def post(self, request: ConductorRequest, name: str) -> HttpResponse:
        query = request.query
        first, last = query.integer("startTime", -1, bits=64), query.integer("endTime", clock.now(), bits=64)
        if first < 0:
            raise Invalid("Required query parameter 'startTime' is missing.")
        slots = schedules.backfill(name, first, last, request.actor.name, query.text("reason"))
        return Json({"slots": slots})


class ExecutionSearch(ConductorView):
    """GET /api/scheduler/search/executions: return a page of schedule executions."""

    operations = {
        "get": ApiOperation(
            "Search the starts of schedules",
            permission=ALLOW_ALL,
            reply=shapes.EXECUTION_PAGE,
            query=PAGE_QUERY | {"query": str},
            rate=SEARCHES,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        rows = filter_readable(request.actor, find_executions(query.text("query")), SCHEDULE, "schedule_name")
        page_rows = order_rows(rows, query.text("sort"), SORT_COLUMNS, ("-slot_at",))[parse_page(query)]
        return Json({"totalHits": rows.count(), "results": [wire_execution(row) for row in page_rows]})


class SchedulerPause(ConductorView):
    """GET, POST /api/scheduler/admin/pause: let no schedule fire."""

    operations = {
        "get": ApiOperation("Pause all schedules", ADMINISTRATORS_ONLY, reply=MapOf(read_text), changes_state=True),
        "post": ApiOperation("Pause all schedules with POST", permission=ADMINISTRATORS_ONLY, reply=MapOf(read_text)),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        schedules.pause_all(request.actor.name)
        return Json(DONE_REPLY)

    def post(self, request: ConductorRequest) -> HttpResponse:
        return self.get(request)


class SchedulerResume(ConductorView):
    """GET, POST /api/scheduler/admin/resume: let schedules fire again."""

    operations = {
        "get": ApiOperation("Resume all schedules", ADMINISTRATORS_ONLY, reply=MapOf(read_text), changes_state=True),
        "post": ApiOperation("Resume all schedules with POST", permission=ADMINISTRATORS_ONLY, reply=MapOf(read_text)),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        schedules.resume_all(request.actor.name)
        return Json(DONE_REPLY)

    def post(self, request: ConductorRequest) -> HttpResponse:
        return self.get(request)


class SchedulerRequeue(ConductorView):
    """GET /api/scheduler/admin/requeue: compute the next slot of schedules that have lost it."""

    operations = {
        "get": ApiOperation(
            "Repair schedules without a next start time",
            permission=ADMINISTRATORS_ONLY,
            reply=shapes.REPAIR,
            changes_state=True,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        number, names = schedules.repair_schedules(request.actor.name)
        return Json({"recordIds.size": number, "sampleIds": names})
