"""Views of schedules."""

from django.db.models import QuerySet
from django.http import HttpResponse

from ....access.access_types import SCHEDULE
from ....access.permissions import filter_readable
from ....core.document.checks.values import texts
from ....core.document.lint import lint_document
from ....core.errors import NotFound, RequestRefused
from ....engine import schedules
from ....engine.access.token_buckets import SEARCHES
from ....models import Schedule
from .. import request_body
from ..api_operation import EMPTY_REPLY, PAGE_QUERY, ApiOperation, ArrayOf
from ..definitions.tag_serializers import TAG
from ..definitions.tag_views import ObjectTags
from ..findings import add_findings
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..permissions import (
    can_delete_schedule,
    can_save_schedule,
    can_update_schedule,
    can_update_schedules,
    can_view_schedule,
)
from ..query_parameters import QueryParameters
from ..replies import EmptyOk, Json
from ..view import ConductorRequest, ConductorView
from .schedule_search import order_rows
from .schedule_serializers import SENT_SCHEDULE, parse_schedule, wire_schedule

SORT_COLUMNS = {"name": "name", "workflowName": "workflow_name", "createTime": "created_at",
                "updatedTime": "updated_at",
            "nextRunTime": "next_run_at", "paused": "is_paused"}  # fmt: skip
MAX_PAGE_SIZE = 5_000


def find_schedule(name: str) -> Schedule:
    """Return a schedule.

    Raises:
        NotFound: when there is none with this name.
    """
    row = Schedule.objects.filter(name=name).first()
    if row is None:
        raise NotFound(f"No such schedule found by name: {name}")
    return row


def readable_schedules(request: ConductorRequest) -> QuerySet[Schedule]:
    """Return the schedules that the caller may read."""
    return filter_readable(request.actor, Schedule.objects.all(), SCHEDULE)


def parse_page(query: QueryParameters) -> slice:
    """Return the requested rows as a slice."""
    start, size = max(query.integer("start", 0), 0), max(query.integer("size", 100), 0)
    return slice(start, start + min(size, MAX_PAGE_SIZE))


class Schedules(ConductorView):
    """GET, POST /api/scheduler/schedules: list all schedules or those of a workflow, or save a schedule."""

    operations = {
        "get": ApiOperation(
            "List all schedules", permission=ALLOW_ALL, reply=ArrayOf(shapes.SCHEDULE), query={"workflowName": str}
        ),
        "post": ApiOperation(
            "Create or update a schedule",
            permission=can_save_schedule,
            reply=shapes.SCHEDULE,
            body=shapes.SCHEDULE,
            reports_findings=True,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        workflow, rows = request.query.text("workflowName"), readable_schedules(request).order_by("name")
        return Json([wire_schedule(row) for row in (rows.filter(workflow_name=workflow) if workflow else rows)])

    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        reply = Json(wire_schedule(schedules.save_schedule(parse_schedule(document), request.actor.name)))
        return add_findings(reply, list(lint_document(document, SENT_SCHEDULE)))


class ScheduleSearch(ConductorView):
    """GET /api/scheduler/schedules/search: return a page of schedules, filtered by workflow, name and pause state."""

    operations = {
        "get": ApiOperation(
            "Search schedules",
            permission=ALLOW_ALL,
            reply=shapes.SCHEDULE_PAGE,
            query=PAGE_QUERY | {"workflowName": str, "scheduleName": str, "paused": bool},
            rate=SEARCHES,
        ),
    }

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

    operations = {
        "get": ApiOperation("Get a schedule", permission=can_view_schedule, reply=shapes.SCHEDULE),
        "delete": ApiOperation("Delete a schedule", permission=can_delete_schedule, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(wire_schedule(find_schedule(name)))

    def delete(self, request: ConductorRequest, name: str) -> HttpResponse:
        schedules.delete_schedule(name, request.actor.name)
        return EmptyOk()


class SchedulePause(ConductorView):
    """GET, PUT /api/scheduler/schedules/{name}/pause: pause a schedule. Each SDK uses one of the two methods."""

    operations = {
        "get": ApiOperation(
            "Pause a schedule with GET",
            permission=can_update_schedule,
            reply=EMPTY_REPLY,
            query={"reason": str},
            changes_state=True,
        ),
        "put": ApiOperation(
            "Pause a schedule", permission=can_update_schedule, reply=EMPTY_REPLY, query={"reason": str}
        ),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        schedules.pause_schedule(name, request.actor.name, request.query.text("reason"))
        return EmptyOk()

    def put(self, request: ConductorRequest, name: str) -> HttpResponse:
        return self.get(request, name)


class ScheduleResume(ConductorView):
    """GET, PUT /api/scheduler/schedules/{name}/resume: let it fire again, from now on."""

    operations = {
        "get": ApiOperation(
            "Resume a schedule with GET", permission=can_update_schedule, reply=EMPTY_REPLY, changes_state=True
        ),
        "put": ApiOperation("Resume a schedule", permission=can_update_schedule, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        schedules.resume_schedule(name, request.actor.name)
        return EmptyOk()

    def put(self, request: ConductorRequest, name: str) -> HttpResponse:
        return self.get(request, name)


class SchedulesPause(ConductorView):
    """PUT /api/scheduler/bulk/pause: pause several schedules."""

    operations = {
        "put": ApiOperation("Pause several schedules", permission=can_update_schedules, reply=shapes.BULK, body=texts),
    }

    def put(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            apply_to_each(
                request_body.read_texts(request), lambda name: schedules.pause_schedule(name, request.actor.name)
            )
        )


class SchedulesResume(ConductorView):
    """PUT /api/scheduler/bulk/resume: resume several schedules."""

    operations = {
        "put": ApiOperation("Resume several schedules", permission=can_update_schedules, reply=shapes.BULK, body=texts),
    }

    def put(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            apply_to_each(
                request_body.read_texts(request), lambda name: schedules.resume_schedule(name, request.actor.name)
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

    operations = {
        "get": ApiOperation("List the tags of a schedule", permission=can_view_schedule, reply=ArrayOf(TAG)),
        "put": ApiOperation(
            "Set the tags of a schedule", permission=can_update_schedule, reply=EMPTY_REPLY, body=ArrayOf(TAG)
        ),
        "delete": ApiOperation("Remove tags from a schedule", permission=can_update_schedule, reply=EMPTY_REPLY),
    }

    find_tags = staticmethod(lambda name: find_schedule(name).tags)
    change_tags = staticmethod(schedules.change_tags)


class SchedulesByTag(ConductorView):
    """GET /api/scheduler/schedules/tags: list the schedules with a tag, written `key` or `key:value`."""

    operations = {
        "get": ApiOperation(
            "List schedules with a tag", permission=ALLOW_ALL, reply=ArrayOf(shapes.SCHEDULE), query={"tag!": str}
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        key, colon, value = request.query.text("tag").partition(":")
        rows = readable_schedules(request).exclude(tags=[]).order_by("name")
        return Json([wire_schedule(row) for row in rows if has_tag(row, key, value if colon else None)])


def has_tag(row: Schedule, key: str, value: str | None) -> bool:
    """Return True if the schedule has the tag."""
    return any(tag["key"] == key and value in (None, tag["value"]) for tag in row.tags)
