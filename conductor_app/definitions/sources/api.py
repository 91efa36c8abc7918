"""Endpoints that plan and apply a folder of definitions, and report what was edited here since."""

from typing import Any

from django.http import HttpResponse

from ...core.document.fields import (
    DocumentPosition,
    FieldSpec,
    ListOf,
    NamedTable,
    read_boolean,
    read_mapping,
    read_text,
)
from ...schedules.serializers import parse_schedule
from ...web.api import requests as request_body
from ...web.api.operations import ApiOperation, Json
from ...web.api.permissions import ALLOW_ALL
from ...web.api.requests import read_request
from ...web.api.view import ConductorRequest, ConductorView
from ..api import serializers
from .commands import AppliedItem, DriftItem, apply_plan, exported_document, find_drift
from .operator_kinds import NAME_BY_PLURAL, source_kinds
from .plan import InvalidDocument, SourceFolder, SourceItem, SourcePlan, plan_source

Document = dict[str, Any]
SOURCE_FOLDER = NamedTable(
    "DefinitionFolder",
    FieldSpec("label", read_text, ""),
    FieldSpec("commit", read_text, ""),
    FieldSpec("documents", ListOf(read_mapping), list),
    FieldSpec("prune", read_boolean, False),
    FieldSpec("overwrite", read_boolean, False),
    FieldSpec("takeOver", read_boolean, False),
    FieldSpec("planDigest", read_text, ""),
)
MAX_ERRORS = 100
KINDS = source_kinds(parse_schedule)


def parse_source(document: Document) -> tuple[SourceFolder, str]:
    """Return the folder of a request, and the digest of the plan that the caller has confirmed."""
    fields = read_request(document, SOURCE_FOLDER, "definitions", _check_source)
    folder = SourceFolder(
        fields["label"].strip(),
        fields["documents"],
        fields["commit"].strip(),
        prunes=fields["prune"],
        overwrites=fields["overwrite"],
        takes_over=fields["takeOver"],
    )
    return folder, fields["planDigest"]


def _check_source(fields: Document, position: DocumentPosition) -> None:
    if None in fields["documents"]:
        position.at("documents").add_missing("documents must be a list of objects")


def plan_document(plan: SourcePlan) -> Document:
    """Return a plan. `isRefused`: it cannot be applied before its problems are solved."""
    return {
        "label": plan.source.label,
        "planDigest": plan.digest,
        "changesSomething": plan.changes_something,
        "isRefused": plan.is_refused,
        "items": [*map(_invalid_document, plan.invalid), *map(item_document, plan.items)],
    }


def item_document(item: SourceItem) -> Document:
    """Return one item of a plan. `document`: the position of its document in the request."""
    found: Document = {"kind": NAME_BY_PLURAL[item.kind.plural], "name": item.name, "action": str(item.action)}
    found |= {"version": item.version} if item.version else {}
    found |= {"document": item.position} if item.position >= 0 else {}
    found |= {"changes": list(item.changes)} if item.changes else {}
    found |= {"edits": list(item.edits)} if item.edits else {}
    found |= {"problem": item.problem} if item.problem else {}
    return found


def _invalid_document(invalid: InvalidDocument) -> Document:
    errors = [{"path": each.path, "message": each.message} for each in invalid.validation_errors[:MAX_ERRORS]]
    found: Document = {"name": invalid.name, "action": "invalid", "document": invalid.position}
    return found | {"problem": invalid.problem} | ({"validationErrors": errors} if errors else {})


def applied_document(applied: AppliedItem) -> Document:
    found = item_document(applied.item) | ({"version": applied.version} if applied.version else {})
    return found | ({"error": applied.error} if applied.error else {})


def drift_document(item: DriftItem) -> Document:
    """Return the state of one applied definition. `current`: what is here, if it was edited."""
    row = item.applied
    found: Document = {
        "kind": NAME_BY_PLURAL[item.kind.plural],
        "name": row.name,
        "label": row.label,
        "commit": row.commit,
        "appliedAt": row.applied_at,
        "appliedBy": row.applied_by,
        "state": "deleted" if item.is_deleted else "edited" if item.is_drifted else "unchanged",
    }
    found |= {"version": row.version} if row.version else {}
    found |= {"statedVersion": row.stated_version} if row.stated_version else {}
    found |= {"newerVersion": item.newer_version} if item.newer_version else {}
    if item.is_drifted:
        found |= {"changedBy": item.changed_by, "changedAt": item.changed_at, "edits": list(item.edits)}
        found |= {"current": exported_document(item)} if not item.is_deleted else {}
    return found


class SourcePlanView(ConductorView):
    """POST /api/definitions/plan: return what applying the documents would change. Nothing is saved.

    Each item requires the right that its change requires; an item without it has the missing right as its problem.
    """

    @ApiOperation("Plan the definitions of a folder", ALLOW_ALL, reply=serializers.SOURCE_PLAN, body=SOURCE_FOLDER)
    def post(self, request: ConductorRequest) -> HttpResponse:
        folder, _ = parse_source(request_body.read_object(request))
        return Json(plan_document(plan_source(folder, KINDS, request.actor.name)))


class SourceApplication(ConductorView):
    """POST /api/definitions/apply: create, change and delete definitions, each in a transaction of its own.

    `planDigest`: of the confirmed plan; the request is refused if the plan is another one by now.
    """

    @ApiOperation(
        "Apply the definitions of a folder", ALLOW_ALL, reply=serializers.SOURCE_APPLICATION, body=SOURCE_FOLDER
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        folder, digest = parse_source(request_body.read_object(request))
        plan = plan_source(folder, KINDS, request.actor.name)
        items = [applied_document(each) for each in apply_plan(plan, digest)]
        return Json({"label": folder.label, "items": items, "failed": sum("error" in each for each in items)})


class SourceDrift(ConductorView):
    """GET /api/definitions/drift: list the definitions that were applied from folders, and later edits.

    `label`: those of one source.
    """

    @ApiOperation(
        "Compare applied definitions with what is stored", ALLOW_ALL, reply=serializers.DRIFTS, query={"label": str}
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        found = find_drift(request.query.text("label"))
        return Json({"definitions": [drift_document(item) for item in found]})
