"""Views of schedules and their next slots, of executions, and of the scheduler."""

from django.db.models import QuerySet
from django.http import HttpResponse

from ..access.permissions import DELETE, EXECUTE, READ, SCHEDULE, UPDATE
from ..access.quotas import SEARCHES
from ..access.visibility import visible
from ..core.document.fields import IntegerOf, ListOf, MapOf, read_text, texts
from ..core.errors import Invalid, NotFound, RequestRefused
from ..core.validation.lint_fields import lint_document
from ..definitions.api.tags import ObjectTags, tag_operations
from ..utils import clock
from ..web.api import permissions as targets
from ..web.api import requests as request_body
from ..web.api.documents import BULK
from ..web.api.operations import PAGE_QUERY, PLAIN_TEXT, ApiOperation, ArrayOf, Json, PlainText, add_findings
from ..web.api.permissions import ADMINISTRATORS_ONLY, ALLOW_ALL, RequiresDefinitionAccess, require_start, requires
from ..web.api.requests import QueryParameters
from ..web.api.view import ConductorRequest, ConductorView
from . import commands, firing, serializers
from .models import Schedule
from .serializers import SENT_SCHEDULE, find_executions, order_rows, parse_schedule, wire_execution, wire_schedule

can_write_schedule = RequiresDefinitionAccess(SCHEDULE, targets.definitions_in_body(SCHEDULE))


class RequiresScheduleAccess:
    """Permission to write the schedule and to start its workflow, because the schedule starts it for its author."""

    def check(self, request: ConductorRequest, url_kwargs: dict[str, str]) -> None:
        can_write_schedule.check(request, url_kwargs)
        document = request_body.read_object(request).get("startWorkflowRequest")
        if not request.actor.permissions.is_admin:
            require_start(
                request.actor, *targets.definitions_started_by(document if isinstance(document, dict) else {})
            )

    def describe(self) -> str:
        return f"{can_write_schedule.describe()}; and EXECUTE on the WORKFLOW_DEF that it starts"


can_view_schedule, can_update_schedule, can_run_schedule, can_update_schedules = (
    requires(READ, SCHEDULE, targets.named_in_address(SCHEDULE, "name")),
    requires(UPDATE, SCHEDULE, targets.named_in_address(SCHEDULE, "name")),
    requires(EXECUTE, SCHEDULE, targets.named_in_address(SCHEDULE, "name")),
    requires(UPDATE, SCHEDULE, targets.names_in_body(SCHEDULE)),
)
can_save_schedule = RequiresScheduleAccess()
can_delete_schedule = requires(DELETE, SCHEDULE, targets.named_in_address(SCHEDULE, "name"))


SORT_COLUMNS = {"name": "name", "workflowName": "workflow_name", "createTime": "created_at",
                "updatedTime": "updated_at",
            "nextRunTime": "next_run_at", "paused": "is_paused"}  # fmt: skip
MAX_PAGE_SIZE = 5_000


def find_schedule(name: str) -> Schedule:
    row = Schedule.objects.filter(name=name).first()
    if row is None:
        raise NotFound(f"No such schedule found by name: {name}")
    return row


def readable_schedules(request: ConductorRequest) -> QuerySet[Schedule]:
    """Return the schedules that the caller may read."""
    return visible(Schedule.objects.all())


def parse_page(query: QueryParameters) -> slice:
    """Return the requested rows as a slice."""
    start, size = max(query.integer("start", 0), 0), max(query.integer("size", 100), 0)
    return slice(start, start + min(size, MAX_PAGE_SIZE))


class Schedules(ConductorView):
    """GET, POST /api/scheduler/schedules: list all schedules or those of a workflow, or save a schedule."""

    @ApiOperation(
        "List all schedules", ALLOW_ALL, reply=ArrayOf(serializers.SCHEDULE_DOCUMENT), query={"workflowName": str}
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        workflow, rows = request.query.text("workflowName"), readable_schedules(request).order_by("name")
        return Json([wire_schedule(row) for row in (rows.filter(workflow_name=workflow) if workflow else rows)])

    @ApiOperation(
        "Create or update a schedule",
        can_save_schedule,
        reply=serializers.SCHEDULE_DOCUMENT,
        body=serializers.SCHEDULE_DOCUMENT,
        reports_findings=True,
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        reply = Json(wire_schedule(commands.save_schedule(parse_schedule(document), request.actor.name)))
        return add_findings(reply, list(lint_document(document, SENT_SCHEDULE)))


class ScheduleSearch(ConductorView):
    """GET /api/scheduler/schedules/search: return a page of schedules, filtered by workflow, name and pause state."""

    @ApiOperation(
        "Search schedules",
        ALLOW_ALL,
        reply=serializers.SCHEDULE_PAGE,
        query=PAGE_QUERY | {"workflowName": str, "scheduleName": str, "paused": bool},
        rate=SEARCHES,
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        query, rows = request.query, readable_schedules(request)
        if workflow := query.text("workflowName"):
            rows = rows.filter(workflow_name=workflow)
        if name := query.text("scheduleName"):
            rows = rows.filter(name__icontains=name)
        if query.text("paused"):
            rows = rows.filter(is_paused=query.flag("paused", False))
        page_rows = order_rows(rows, query.text("sort"), SORT_COLUMNS, ("name",))[parse_page(query)]
        return Json({"totalHits": rows.count(), "results": [wire_schedule(row) for row in page_rows]})


class ScheduleOne(ConductorView):
    """GET, DELETE /api/scheduler/schedules/{name}: get or delete a schedule."""

    @ApiOperation("Get a schedule", can_view_schedule, reply=serializers.SCHEDULE_DOCUMENT)
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(wire_schedule(find_schedule(name)))

    @ApiOperation("Delete a schedule", can_delete_schedule)
    def delete(self, request: ConductorRequest, name: str) -> None:
        commands.delete_schedule(name, request.actor.name)


class SchedulePause(ConductorView):
    """GET, PUT /api/scheduler/schedules/{name}/pause: pause a schedule. Each SDK uses one of the two methods."""

    @ApiOperation("Pause a schedule with GET", can_update_schedule, query={"reason": str}, changes_state=True)
    def get(self, request: ConductorRequest, name: str) -> None:
        firing.pause_schedule(name, request.actor.name, request.query.text("reason"))

    @ApiOperation("Pause a schedule", can_update_schedule, query={"reason": str})
    def put(self, request: ConductorRequest, name: str) -> None:
        self.get(request, name)


class ScheduleResume(ConductorView):
    """GET, PUT /api/scheduler/schedules/{name}/resume: let it fire again, from now on."""

    @ApiOperation("Resume a schedule with GET", can_update_schedule, changes_state=True)
    def get(self, request: ConductorRequest, name: str) -> None:
        firing.resume_schedule(name, request.actor.name)

    @ApiOperation("Resume a schedule", can_update_schedule)
    def put(self, request: ConductorRequest, name: str) -> None:
        self.get(request, name)


class SchedulesPause(ConductorView):
    """PUT /api/scheduler/bulk/pause: pause several schedules."""

    @ApiOperation("Pause several schedules", can_update_schedules, reply=BULK, body=texts)
    def put(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            apply_to_each(
                request_body.read_texts(request), lambda name: firing.pause_schedule(name, request.actor.name)
            )
        )


class SchedulesResume(ConductorView):
    """PUT /api/scheduler/bulk/resume: resume several schedules."""

    @ApiOperation("Resume several schedules", can_update_schedules, reply=BULK, body=texts)
    def put(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            apply_to_each(
                request_body.read_texts(request),
                lambda name: firing.resume_schedule(name, request.actor.name),
            )
        )


def apply_to_each(names: list[str], command) -> dict[str, object]:
    """Return a BulkResponse: the names for which the command succeeded, and the error for each other name."""
    done, refused = [], {}
    for name in dict.fromkeys(names):
        try:
            command(name)
            done.append(name)
        except RequestRefused as why:
            refused[name] = why.message
    return {"bulkErrorResults": refused, "bulkSuccessfulResults": done}


class ScheduleTags(ObjectTags):
    """GET, PUT, DELETE /api/scheduler/schedules/{name}/tags: list, replace or remove tags."""

    operations = tag_operations("a schedule", can_view_schedule, can_update_schedule)

    find_tags = staticmethod(lambda name: find_schedule(name).tags)
    change_tags = staticmethod(commands.change_tags)


class SchedulesByTag(ConductorView):
    """GET /api/scheduler/schedules/tags: list the schedules with a tag, written `key` or `key:value`."""

    @ApiOperation(
        "List schedules with a tag", ALLOW_ALL, reply=ArrayOf(serializers.SCHEDULE_DOCUMENT), query={"tag!": str}
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        key, colon, value = request.query.text("tag").partition(":")
        rows = readable_schedules(request).exclude(tags=[]).order_by("name")
        return Json([wire_schedule(row) for row in rows if has_tag(row, key, value if colon else None)])


def has_tag(row: Schedule, key: str, value: str | None) -> bool:
    return any(tag["key"] == key and value in (None, tag["value"]) for tag in row.tags)


MAX_TIMES = 5
EXECUTION_SORT_COLUMNS = {
    "scheduledTime": "slot_at",
    "executionTime": "executed_at",
    "scheduleName": "schedule_name",
    "workflowName": "workflow_name",
    "state": "state",
}
DONE_REPLY = {"status": "done"}


class NextFewSchedules(ConductorView):
    """GET /api/scheduler/nextFewSchedules: list the next times of a cron expression."""

    @ApiOperation(
        "List the next start times of a cron expression",
        ALLOW_ALL,
        reply=ListOf(IntegerOf(64)),
        query={
            "cronExpression!": str,
            "zoneId": str,
            "limit": int,
            "scheduleStartTime": int,
            "scheduleEndTime": int,
        },
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        times = commands.next_times(
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

    @ApiOperation("Run a schedule now", can_run_schedule, reply=PLAIN_TEXT, query={"reason": str})
    def post(self, request: ConductorRequest, name: str) -> HttpResponse:
        return PlainText(commands.run_now(name, request.actor.name, request.query.text("reason")))


class ScheduleBackfill(ConductorView):
    """POST /api/scheduler/schedules/{name}/backfill: execute the slots of a past period."""

    @ApiOperation(
        "Start the runs that a schedule missed",
        can_run_schedule,
        reply=serializers.BACKFILL,
        query={"startTime!": int, "endTime": int, "reason": str},
    )
    def post(self, request: ConductorRequest, name: str) -> HttpResponse:
        query = request.query
        first, last = query.integer("startTime", -1, bits=64), query.integer("endTime", clock.now(), bits=64)
        if first < 0:
            raise Invalid("Required query parameter 'startTime' is missing.")
        slots = commands.backfill(name, first, last, request.actor.name, query.text("reason"))
        return Json({"slots": slots})


class ExecutionSearch(ConductorView):
    """GET /api/scheduler/search/executions: return a page of schedule executions."""

    @ApiOperation(
        "Search the starts of schedules",
        ALLOW_ALL,
        reply=serializers.EXECUTION_PAGE,
        query=PAGE_QUERY | {"query": str},
        rate=SEARCHES,
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        rows = visible(find_executions(query.text("query")))
        page_rows = order_rows(rows, query.text("sort"), EXECUTION_SORT_COLUMNS, ("-slot_at",))[parse_page(query)]
        return Json({"totalHits": rows.count(), "results": [wire_execution(row) for row in page_rows]})


class SchedulerPause(ConductorView):
    """GET, POST /api/scheduler/admin/pause: let no schedule fire."""

    @ApiOperation("Pause all schedules", ADMINISTRATORS_ONLY, reply=MapOf(read_text), changes_state=True)
    def get(self, request: ConductorRequest) -> HttpResponse:
        firing.pause_all(request.actor.name)
        return Json(DONE_REPLY)

    @ApiOperation("Pause all schedules with POST", ADMINISTRATORS_ONLY, reply=MapOf(read_text))
    def post(self, request: ConductorRequest) -> HttpResponse:
        return self.get(request)


class SchedulerResume(ConductorView):
    """GET, POST /api/scheduler/admin/resume: let schedules fire again."""

    @ApiOperation("Resume all schedules", ADMINISTRATORS_ONLY, reply=MapOf(read_text), changes_state=True)
    def get(self, request: ConductorRequest) -> HttpResponse:
        firing.resume_all(request.actor.name)
        return Json(DONE_REPLY)

    @ApiOperation("Resume all schedules with POST", ADMINISTRATORS_ONLY, reply=MapOf(read_text))
    def post(self, request: ConductorRequest) -> HttpResponse:
        return self.get(request)


class SchedulerRequeue(ConductorView):
    """GET /api/scheduler/admin/requeue: compute the next slot of schedules that have lost it."""

    @ApiOperation(
        "Repair schedules without a next start time", ADMINISTRATORS_ONLY, reply=serializers.REPAIR, changes_state=True
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        number, names = firing.repair_schedules(request.actor.name)
        return Json({"recordIds.size": number, "sampleIds": names})
