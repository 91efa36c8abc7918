"""Views of workflow definitions."""

from dataclasses import replace
from itertools import groupby

from django.db.models import QuerySet
from django.http import HttpResponse

from ....access.access_types import WORKFLOW_DEF
from ....access.conductor_auth import Actor
from ....access.permissions import filter_readable
from ....core.document.checks import coerce_workflow
from ....core.document.checks.field_specs import WORKFLOW_DEFINITION
from ....core.document.checks.values import texts
from ....core.errors import NotFound, ValidationError, ValidationFailed
from ....engine.definitions import definition_commands
from ....models import WorkflowDefinition
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf, ArraysByKey
from ..findings import add_findings, finding_document
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..permissions import can_delete_workflow, can_save_workflows, can_validate_workflows, can_view_workflow
from ..query_parameters import parse_integer
from ..replies import EmptyOk, Json
from ..request_fields import errors_under
from ..view import ConductorRequest, ConductorView
from .definition_serializers import classifier_of, definition_summary, workflow_definition_document
from .tag_serializers import take_tags
from .tag_views import requested_tags, save_given_tags


class WorkflowDefinitions(ConductorView):
    """GET, POST, PUT /api/metadata/workflow: list all definitions, create one, or save several."""

    operations = {
        "get": ApiOperation(
            "List all workflow definitions",
            permission=ALLOW_ALL,
            reply=ArrayOf(WORKFLOW_DEFINITION),
            query={"classifier": str},
        ),
        "post": ApiOperation(
            "Create a workflow definition",
            permission=can_save_workflows,
            reply=EMPTY_REPLY,
            body=WORKFLOW_DEFINITION,
            query={"overwrite": bool},
            reports_findings=True,
        ),
        "put": ApiOperation(
            "Create or update workflow definitions",
            permission=can_save_workflows,
            reply=shapes.SAVED_DEFINITIONS,
            body=ArrayOf(WORKFLOW_DEFINITION),
            reports_findings=True,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        wanted, rows = request.query.text("classifier").lower(), definitions_in_order(request.actor)
        return Json(
            [workflow_definition_document(row) for row in rows if not wanted or classifier_of(row.document) == wanted]
        )

    def post(self, request: ConductorRequest) -> HttpResponse:
        overwrite = request.query.flag("overwrite", False)
        with errors_under("registerWorkflowDef.workflowDef"):
            document = coerce_workflow(request_body.read_object(request))
            given = take_tags(document)
            definition_commands.save_workflow(document, request.actor.name, overwrite=overwrite)
            save_given_tags(WORKFLOW_DEF, document, given, request.actor.name)
        return add_findings(EmptyOk(), definition_commands.lint_workflow(document))

    def put(self, request: ConductorRequest) -> HttpResponse:
        documents = request_body.read_objects(request)
        if not documents:
            raise ValidationFailed([ValidationError("updateWorkflowDef.workflowDefList", "WorkflowDefList is empty")])
        documents = [coerce_workflow(each) for each in documents]
        with errors_under("updateWorkflowDef.workflowDefList"):
            tags = [take_tags(document) for document in documents]
            came_to = definition_commands.save_workflows(documents, request.actor.name)
            for document, given in zip(documents, tags, strict=True):
                if given and document.get("name") in came_to["saved"]:
                    save_given_tags(WORKFLOW_DEF, document, given, request.actor.name)
        found = [
            replace(finding, path=f"[{number}].{finding.path}".rstrip("."))
            for number, document in enumerate(documents)
            for finding in definition_commands.lint_workflow(document)
        ]
        reply = {"bulkErrorResults": came_to["errors"], "bulkSuccessfulResults": came_to["saved"]}
        if found:
            reply["findings"] = [finding_document(each) for each in found]
        return add_findings(Json(reply), found)


class WorkflowDefinitionCheck(ConductorView):
    """POST /api/metadata/workflow/validate: return the errors and the lint findings of a definition."""

    operations = {
        "post": ApiOperation(
            "Validate a workflow definition; the response is empty if there are no findings",
            permission=can_validate_workflows,
            reply=shapes.FINDINGS,
            body=WORKFLOW_DEFINITION,
            empty_when="there are no findings",
        ),
    }

    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        if validation_errors := definition_commands.validate_workflow(document, "validateWorkflowDef.workflowDef."):
            raise ValidationFailed(validation_errors)
        # The definition is checked alone, because definitions of other teams must not be revealed.
        found = definition_commands.lint_workflow(document)
        # Without findings the reply is empty, as the original's is: some clients cannot read a JSON one.
        return Json({"findings": [finding_document(each) for each in found]}) if found else EmptyOk()


class WorkflowDefinitionOne(ConductorView):
    """GET /api/metadata/workflow/{name}: get a version of a definition, the newest by default."""

    operations = {
        "get": ApiOperation(
            "Get a workflow definition, with its tags if `metadata` is true",
            permission=can_view_workflow,
            reply=shapes.TAGGED_WORKFLOW_DEFINITION,
            query={"version": int, "metadata": bool},
        ),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        rows = WorkflowDefinition.objects.filter(name=name).order_by("-version")
        if request.query.text("version"):
            rows = rows.filter(version=request.query.integer("version", 1))
        row = rows.first()
        if row is None:
            raise NotFound(
                f"No such workflow found by name: {name}, version: {request.query.text('version') or 'null'}"
            )
        return Json(workflow_definition_document(row) | requested_tags(request, WORKFLOW_DEF, name))


class WorkflowDefinitionVersion(ConductorView):
    """DELETE /api/metadata/workflow/{name}/{version}: delete one version. Its runs continue."""

    operations = {
        "delete": ApiOperation(
            "Delete a version of a workflow definition", permission=can_delete_workflow, reply=EMPTY_REPLY
        ),
    }

    def delete(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        definition_commands.delete_workflow(name, parse_integer(version, "The version"), request.actor.name)
        return EmptyOk()


class LatestVersions(ConductorView):
    """GET /api/metadata/workflow/latest-versions: list the newest version of each definition."""

    operations = {
        "get": ApiOperation(
            "List the latest versions of all workflow definitions",
            permission=ALLOW_ALL,
            reply=ArrayOf(WORKFLOW_DEFINITION),
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        newest = {row.name: row for row in definitions_in_order(request.actor)}
        return Json([workflow_definition_document(row) for row in newest.values()])


class WorkflowNames(ConductorView):
    """GET /api/metadata/workflow/names: list the names of all definitions."""

    operations = {
        "get": ApiOperation("List the names of workflow definitions", permission=ALLOW_ALL, reply=texts),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        names = definitions_in_order(request.actor).order_by("name").values_list("name", flat=True)
        return Json(list(names.distinct()))


class NamesAndVersions(ConductorView):
    """GET /api/metadata/workflow/names-and-versions: get the versions of each definition by its name."""

    operations = {
        "get": ApiOperation(
            "List the versions of all workflow definitions",
            permission=ALLOW_ALL,
            reply=ArraysByKey(shapes.DEFINITION_SUMMARY),
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        groups = groupby(definitions_in_order(request.actor).defer("document"), key=lambda row: row.name)
        return Json({name: [definition_summary(row) for row in rows] for name, rows in groups})


class Versions(ConductorView):
    """GET /api/metadata/workflow/{name}/versions: list the versions of a definition."""

    operations = {
        "get": ApiOperation(
            "List the versions of a workflow definition",
            permission=can_view_workflow,
            reply=ArrayOf(shapes.DEFINITION_SUMMARY),
        ),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(
            [definition_summary(row) for row in definitions_in_order(request.actor).filter(name=name).defer("document")]
        )


def definitions_in_order(actor: Actor) -> QuerySet[WorkflowDefinition]:
    """Return all definitions that the actor may read, by name and version."""
    return filter_readable(actor, WorkflowDefinition.objects.order_by("name", "version"), WORKFLOW_DEF)
