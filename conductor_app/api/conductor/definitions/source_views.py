"""Views that plan and apply a folder of definitions, and report what was edited here since."""

from django.http import HttpResponse

from ....engine.definitions.source_apply import apply_plan
from ....engine.definitions.source_drift import find_drift
from ....engine.definitions.source_kinds import source_kinds
from ....engine.definitions.source_plan import plan_source
from .. import request_body
from ..api_operation import ApiOperation
from ..openapi import insight_tables
from ..permission_rules import ALLOW_ALL
from ..replies import Json
from ..schedules.schedule_serializers import parse_schedule
from ..view import ConductorRequest, ConductorView
from .source_serializers import SOURCE_FOLDER, applied_document, drift_document, parse_source, plan_document

KINDS = source_kinds(parse_schedule)


class SourcePlanView(ConductorView):
    """POST /api/definitions/plan: return what applying the documents would change. Nothing is saved.

    Each item requires the right that its change requires; an item without it has the missing right as its problem.
    """

    operations = {
        "post": ApiOperation(
            "Plan the definitions of a folder",
            permission=ALLOW_ALL,
            reply=insight_tables.SOURCE_PLAN,
            body=SOURCE_FOLDER,
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        folder, _ = parse_source(request_body.read_object(request))
        return Json(plan_document(plan_source(folder, KINDS, request.actor.name)))


class SourceApplication(ConductorView):
    """POST /api/definitions/apply: create, change and delete definitions, each in a transaction of its own.

    `planDigest`: of the confirmed plan; the request is refused if the plan is another one by now.
    """

    operations = {
        "post": ApiOperation(
            "Apply the definitions of a folder",
            permission=ALLOW_ALL,
            reply=insight_tables.APPLICATION,
            body=SOURCE_FOLDER,
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        folder, digest = parse_source(request_body.read_object(request))
        plan = plan_source(folder, KINDS, request.actor.name)
        items = [applied_document(each) for each in apply_plan(plan, digest)]
        return Json({"label": folder.label, "items": items, "failed": sum("error" in each for each in items)})


class SourceDrift(ConductorView):
    """GET /api/definitions/drift: list the definitions that were applied from folders, and later edits.

    `label`: those of one source.
    """

    operations = {
        "get": ApiOperation(
            "Compare applied definitions with what is stored",
            permission=ALLOW_ALL,
            reply=insight_tables.DRIFTS,
            query={"label": str},
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        found = find_drift(request.query.text("label"))
        return Json({"definitions": [drift_document(item) for item in found]})
