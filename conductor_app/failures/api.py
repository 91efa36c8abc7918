"""Views of failure groups: failures with the same cause, their impact, and what they have in common."""

from typing import Any

from django.http import HttpResponse

from ..access.visibility import visible
from ..core.document.fields import (
    FieldSpec,
    FieldTable,
    IntegerOf,
    ListOf,
    MapOf,
    NamedTable,
    ObjectOf,
    read_boolean,
    read_text,
)
from ..core.errors import Invalid, NotFound
from ..utils import clock
from ..utils.formatting import DAY_RANGE, LENGTHS, TimeRange
from ..web.api.documents import LONG, fields_of_type
from ..web.api.operations import ApiOperation, Json
from ..web.api.permissions import ALLOW_ALL
from ..web.api.view import ConductorRequest, ConductorView
from . import queries
from .models import Failure, FailureGroup

FAILURE_GROUP_FIELDS: FieldTable = (
    *fields_of_type(LONG, "id", "count", "firstAt", "lastAt"),
    *fields_of_type(read_text, "definition", "message", "state", "sampleWorkflowId", "assignee", "note",
                    "taskReferenceName"),
)  # fmt: skip
LAST_DAY = NamedTable("FailuresOfLastDay", *fields_of_type(LONG, "failures", "affectedRuns", "lostRuns"))
FAILURE_GROUP = NamedTable("FailureGroup", *FAILURE_GROUP_FIELDS, FieldSpec("lastDay", ObjectOf(LAST_DAY)))
FAILURE_GROUPS = NamedTable(
    "FailureGroups", FieldSpec("isIncomplete", read_boolean), FieldSpec("groups", ListOf(ObjectOf(FAILURE_GROUP)))
)
FAILURE_SHARE: FieldTable = (
    FieldSpec("value", read_text),
    *fields_of_type(LONG, "count", "percent", "basePercent"),
    FieldSpec("isNotable", read_boolean),
)
COUNTS = NamedTable("FailureCounts", *fields_of_type(LONG, "since", "stepMs"), FieldSpec("values", ListOf(LONG)))
FAILURE_SAMPLE = NamedTable(
    "FailureSample", FieldSpec("at", LONG), *fields_of_type(read_text, "message", "workflowId", "taskId", "workerId")
)
FAILURE_DETAIL = NamedTable(
    "FailureGroupDetail",
    *FAILURE_GROUP_FIELDS,
    FieldSpec("firstVersion", IntegerOf()),
    *fields_of_type(read_text, "firstBuild", "trace"),
    *fields_of_type(LONG, "examined", "affectedRuns"),
    FieldSpec("breakdown", MapOf(ListOf(ObjectOf(FAILURE_SHARE)))),
    FieldSpec("counts", ObjectOf(COUNTS)),
    FieldSpec("samples", ListOf(ObjectOf(FAILURE_SAMPLE))),
)


Document = dict[str, Any]


class FailureGroups(ConductorView):
    """GET /api/insight/failures: list groups of failures with the same cause, most recent first.

    `view`: `open` (default), `new`, `regressed`, `resolved`, `ignored` or `all`. `sort`: `last`, `lost`, `count` or
    `first`. `definition` and `text` filter by workflow, and by error or task.
    """

    @ApiOperation(
        "List failure groups",
        ALLOW_ALL,
        reply=FAILURE_GROUPS,
        query={"view": str, "definition": str, "text": str, "sort": str},
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        view, sort = query.text("view") or "open", query.text("sort") or queries.LAST
        for value, known, name in ((view, queries.VIEWS, "view"), (sort, queries.ORDERS, "sort")):
            if value not in known:
                raise Invalid(f"The parameter '{name}' must be one of {', '.join(known)} (got {value[:40]!r}).")
        inbox = queries.failure_inbox(
            view,
            request.actor.name,
            clock.now(),
            definition=query.text("definition"),
            text=query.text("text"),
            sort=sort,
        )
        return Json({"isIncomplete": inbox.is_cut, "groups": [_listed_document(listed) for listed in inbox.groups]})


class FailureGroupInsight(ConductorView):
    """GET /api/insight/failures/{id}: get what the failures of a group have in common.

    `range`: `1h`, `24h` (default), `7d` or `30d`, the range of `counts`.
    """

    @ApiOperation("Explain a failure group", ALLOW_ALL, reply=FAILURE_DETAIL, query={"range": str})
    def get(self, request: ConductorRequest, group_id: int) -> HttpResponse:
        length = request.query.text("range") or DAY_RANGE
        if length not in LENGTHS:
            raise Invalid(f"The parameter 'range' must be one of {', '.join(LENGTHS)} (got {length[:40]!r}).")
        groups = visible(FailureGroup.objects.filter(pk=group_id))
        group = groups.select_related("merged_into").first()
        if group is None:
            raise NotFound(f"There is no failure group {group_id}.")
        time_range = TimeRange.aligned(length, clock.now())
        return Json(_detail_document(queries.failure_detail(queries.shown_group(group), time_range), time_range))


def _listed_document(listed: queries.ListedFailureGroup) -> Document:
    impact = listed.impact
    last_day = {"failures": listed.today, "affectedRuns": len(impact.affected), "lostRuns": len(impact.lost)}
    return {**_group_document(listed.group), "lastDay": last_day}


def _group_document(group: FailureGroup) -> Document:
    facts: Document = {"assignee": group.assignee, "note": group.note, "taskReferenceName": group.ref}
    return {
        "id": group.pk,
        "definition": group.definition,
        "message": group.message,
        "state": group.state,
        "count": group.count,
        "firstAt": group.first_at,
        "lastAt": group.last_at,
        "sampleWorkflowId": group.sample_run_id,
        **{name: value for name, value in facts.items() if value},
    }


def _detail_document(detail: queries.FailureDetail, time_range: TimeRange) -> Document:
    origin = {"firstVersion": detail.first_version, "firstBuild": detail.first_build, "trace": detail.trace}
    return {
        **_group_document(detail.group),
        **{name: value for name, value in origin.items() if value},
        "examined": detail.examined_count,
        "affectedRuns": detail.runs,
        "breakdown": {name: [_share_document(each) for each in found] for name, found in detail.by.items()},
        "counts": {"since": time_range.since, "stepMs": time_range.step, "values": detail.bars},
        "samples": [_sample_document(failure) for failure in detail.samples],
    }


def _share_document(share: queries.FailureShare) -> Document:
    base = {} if share.base_percent is None else {"basePercent": share.base_percent}
    return {"value": share.value, "count": share.count, "percent": share.percent, "isNotable": share.is_notable, **base}


def _sample_document(failure: Failure) -> Document:
    facts = {"workflowId": failure.run_id, "taskId": failure.attempt_id or failure.task_id, "workerId": failure.worker}
    return {"at": failure.at, "message": failure.message} | {name: value for name, value in facts.items() if value}
