"""Endpoints of workflow definitions, task definitions, schemas and workflow tests."""

import json
from dataclasses import dataclass, replace
from itertools import groupby

from django.db.models import QuerySet
from django.http import HttpResponse

from ...access.authentication import Actor, missing_permission_error
from ...access.permissions import CREATE, DELETE, READ, SCHEMA, TASK_DEF, UPDATE, WORKFLOW_DEF, Right
from ...access.visibility import visible, visible_to
from ...core.document.fields import SCHEMA as SCHEMA_FIELDS
from ...core.document.fields import TASK_DEFINITION, WORKFLOW_DEFINITION, coerce_task, coerce_workflow, texts
from ...core.errors import Conflict, Invalid, NotFound, ValidationError, ValidationFailed
from ...web.api import documents as shapes
from ...web.api import permissions as targets
from ...web.api import requests as request_body
from ...web.api.operations import ApiOperation, ArrayOf, ArraysByKey, EmptyOk, Json, add_findings, finding_document
from ...web.api.permissions import (
    ALLOW_ALL,
    RequiresAccess,
    RequiresDefinitionAccess,
    can_start_workflow,
    can_view_task_definition,
    can_view_workflow,
    describe_right,
    requires,
)
from ...web.api.requests import errors_under, parse_integer
from ...web.api.view import ConductorRequest, ConductorView
from ...web.forms import format_json
from .. import commands, schemas, validation
from ..models import DefinitionDraft, SchemaDefinition, TaskDefinition, WorkflowDefinition
from ..simulation.commands import test_workflow
from . import serializers
from .serializers import (
    TEST_REQUEST,
    classifier_of,
    definition_summary,
    parse_test_request,
    schema_document,
    short_schema_document,
    take_tags,
    task_definition_document,
    workflow_definition_document,
)
from .tags import requested_tags, save_given_tags


@dataclass(frozen=True, slots=True)
class RequiresAnyAccess:
    """One of these rights on any object, for requests whose work is for those who have one."""

    rights: tuple[Right, ...]

    def check(self, request: ConductorRequest, url_kwargs: dict[str, str]) -> None:
        if not request.actor.permissions.allows_any(*self.rights):
            raise missing_permission_error(request.actor, self.rights, {})

    def describe(self) -> str:
        return f"{' or '.join(map(describe_right, self.rights))}, on any object"


can_validate_workflows = RequiresAnyAccess(((CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF)))
can_save_workflows = RequiresDefinitionAccess(WORKFLOW_DEF, targets.definitions_in_body(WORKFLOW_DEF))
can_draft_workflow = RequiresAccess(
    ((CREATE, WORKFLOW_DEF), (UPDATE, WORKFLOW_DEF)), targets.named_in_address(WORKFLOW_DEF, "name")
)
can_delete_workflow = requires(DELETE, WORKFLOW_DEF, targets.named_in_address(WORKFLOW_DEF, "name"))
can_save_task_definitions = RequiresDefinitionAccess(TASK_DEF, targets.definitions_in_body(TASK_DEF))
can_delete_task_definition = requires(DELETE, TASK_DEF, targets.named_in_address(TASK_DEF, "name"))
can_save_schemas = RequiresDefinitionAccess(SCHEMA, targets.definitions_in_body(SCHEMA))
can_view_schema = requires(READ, SCHEMA, targets.named_in_address(SCHEMA, "name"))
can_delete_schema = requires(DELETE, SCHEMA, targets.named_in_address(SCHEMA, "name"))


class WorkflowDefinitions(ConductorView):
    """GET, POST, PUT /api/metadata/workflow: list all definitions, create one, or save several."""

    @ApiOperation(
        "List all workflow definitions", ALLOW_ALL, reply=ArrayOf(WORKFLOW_DEFINITION), query={"classifier": str}
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        wanted, rows = request.query.text("classifier").lower(), definitions_in_order(request.actor)
        return Json(
            [workflow_definition_document(row) for row in rows if not wanted or classifier_of(row.document) == wanted]
        )

    @ApiOperation(
        "Create a workflow definition",
        can_save_workflows,
        body=WORKFLOW_DEFINITION,
        query={"overwrite": bool},
        reports_findings=True,
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        overwrite = request.query.flag("overwrite", False)
        with errors_under("registerWorkflowDef.workflowDef"):
            document = coerce_workflow(request_body.read_object(request))
            given = take_tags(document)
            commands.save_workflow(document, request.actor.name, overwrite=overwrite)
            save_given_tags(WORKFLOW_DEF, document, given, request.actor.name)
        return add_findings(EmptyOk(), validation.lint_workflow(document))

    @ApiOperation(
        "Create or update workflow definitions",
        can_save_workflows,
        reply=serializers.SAVED_DEFINITIONS,
        body=ArrayOf(WORKFLOW_DEFINITION),
        reports_findings=True,
    )
    def put(self, request: ConductorRequest) -> HttpResponse:
        documents = request_body.read_objects(request)
        if not documents:
            raise ValidationFailed([ValidationError("updateWorkflowDef.workflowDefList", "WorkflowDefList is empty")])
        documents = [coerce_workflow(each) for each in documents]
        with errors_under("updateWorkflowDef.workflowDefList"):
            tags = [take_tags(document) for document in documents]
            came_to = commands.save_workflows(documents, request.actor.name)
            for document, given in zip(documents, tags, strict=True):
                if given and document.get("name") in came_to["saved"]:
                    save_given_tags(WORKFLOW_DEF, document, given, request.actor.name)
        found = [
            replace(finding, path=f"[{number}].{finding.path}".rstrip("."))
            for number, document in enumerate(documents)
            for finding in validation.lint_workflow(document)
        ]
        reply = {"bulkErrorResults": came_to["errors"], "bulkSuccessfulResults": came_to["saved"]}
        if found:
            reply["findings"] = [finding_document(each) for each in found]
        return add_findings(Json(reply), found)


class WorkflowDefinitionCheck(ConductorView):
    """POST /api/metadata/workflow/validate: return the errors and the lint findings of a definition."""

    @ApiOperation(
        "Validate a workflow definition; the response is empty if there are no findings",
        can_validate_workflows,
        reply=serializers.FINDINGS,
        body=WORKFLOW_DEFINITION,
        empty_when="there are no findings",
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        document = request_body.read_object(request)
        if validation_errors := validation.validate_workflow(document, "validateWorkflowDef.workflowDef."):
            raise ValidationFailed(validation_errors)
        # The definition is checked alone, because definitions of other teams must not be revealed.
        found = validation.lint_workflow(document)
        # Without findings the reply is empty, as the original's is: some clients cannot read a JSON one.
        return Json({"findings": [finding_document(each) for each in found]}) if found else EmptyOk()


class WorkflowDefinitionOne(ConductorView):
    """GET /api/metadata/workflow/{name}: get a version of a definition, the newest by default."""

    @ApiOperation(
        "Get a workflow definition, with its tags if `metadata` is true",
        can_view_workflow,
        reply=serializers.TAGGED_WORKFLOW_DEFINITION,
        query={"version": int, "metadata": bool},
    )
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


class WorkflowDraft(ConductorView):
    """PUT, GET, DELETE /api/metadata/workflow/{name}/draft: the caller's draft of a definition.

    A person opens it in the editor and saves it.
    """

    @ApiOperation(
        "Save a draft of a workflow definition",
        can_draft_workflow,
        reply=serializers.SAVED_DRAFT,
        body=WORKFLOW_DEFINITION,
    )
    def put(self, request: ConductorRequest, name: str) -> HttpResponse:
        document = request_body.read_object(request)
        if document.get("name") != name:
            raise Invalid(f"`name` of the definition must be {name}, as in the address.")
        newest = WorkflowDefinition.objects.filter(name=name).order_by("-version").first()
        base = f"r{newest.revision}n{newest.version}" if newest else ""
        commands.save_draft("workflow", name, format_json(document), base, request.actor.name)
        return Json(serializers.draft_document(name, request.actor.name, newest))

    @ApiOperation("Get your draft of a workflow definition", can_draft_workflow, reply=WORKFLOW_DEFINITION)
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        drafts = DefinitionDraft.objects.filter(kind="workflow", name=name, author=request.actor.name)
        text = drafts.values_list("text", flat=True).first()
        if text is None:
            raise NotFound(f"{request.actor.name} has no draft of the workflow {name}")
        try:
            return Json(json.loads(text))
        except ValueError:
            raise Conflict(f"The draft of the workflow {name} is no valid JSON.") from None

    @ApiOperation("Delete your draft of a workflow definition", can_draft_workflow)
    def delete(self, request: ConductorRequest, name: str) -> None:
        commands.delete_draft("workflow", name, request.actor.name)


class WorkflowDefinitionVersion(ConductorView):
    """DELETE /api/metadata/workflow/{name}/{version}: delete one version. Its runs continue."""

    @ApiOperation("Delete a version of a workflow definition", can_delete_workflow)
    def delete(self, request: ConductorRequest, name: str, version: str) -> None:
        commands.delete_workflow(name, parse_integer(version, "The version"), request.actor.name)


class LatestVersions(ConductorView):
    """GET /api/metadata/workflow/latest-versions: list the newest version of each definition."""

    @ApiOperation("List the latest versions of all workflow definitions", ALLOW_ALL, reply=ArrayOf(WORKFLOW_DEFINITION))
    def get(self, request: ConductorRequest) -> HttpResponse:
        newest = {row.name: row for row in definitions_in_order(request.actor)}
        return Json([workflow_definition_document(row) for row in newest.values()])


class WorkflowNames(ConductorView):
    """GET /api/metadata/workflow/names: list the names of all definitions."""

    @ApiOperation("List the names of workflow definitions", ALLOW_ALL, reply=texts)
    def get(self, request: ConductorRequest) -> HttpResponse:
        names = definitions_in_order(request.actor).order_by("name").values_list("name", flat=True)
        return Json(list(names.distinct()))


class NamesAndVersions(ConductorView):
    """GET /api/metadata/workflow/names-and-versions: get the versions of each definition by its name."""

    @ApiOperation(
        "List the versions of all workflow definitions", ALLOW_ALL, reply=ArraysByKey(serializers.DEFINITION_SUMMARY)
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        groups = groupby(definitions_in_order(request.actor).defer("document"), key=lambda row: row.name)
        return Json({name: [definition_summary(row) for row in rows] for name, rows in groups})


class Versions(ConductorView):
    """GET /api/metadata/workflow/{name}/versions: list the versions of a definition."""

    @ApiOperation(
        "List the versions of a workflow definition", can_view_workflow, reply=ArrayOf(serializers.DEFINITION_SUMMARY)
    )
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(
            [definition_summary(row) for row in definitions_in_order(request.actor).filter(name=name).defer("document")]
        )


def definitions_in_order(actor: Actor) -> QuerySet[WorkflowDefinition]:
    """Return all definitions that the actor may read, by name and version."""
    return visible_to(actor, WorkflowDefinition.objects.order_by("name", "version"))


class TaskDefinitions(ConductorView):
    """GET, POST, PUT /api/metadata/taskdefs: list all definitions, save several, or update one."""

    @ApiOperation("List all task definitions", ALLOW_ALL, reply=ArrayOf(TASK_DEFINITION))
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = visible(TaskDefinition.objects.order_by("name"))
        return Json([task_definition_document(row) for row in rows])

    @ApiOperation(
        "Create task definitions", can_save_task_definitions, body=ArrayOf(TASK_DEFINITION), reports_findings=True
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        documents = request_body.read_objects(request)
        if not documents:
            raise ValidationFailed([ValidationError("registerTaskDef.taskDefinitions", "TaskDefList is empty")])
        with errors_under("registerTaskDef.taskDefinitions"):
            documents = [coerce_task(each) for each in documents]
            tags = [take_tags(document) for document in documents]
            commands.save_tasks(documents, request.actor.name)
            for document, given in zip(documents, tags, strict=True):
                save_given_tags(TASK_DEF, document, given, request.actor.name)
        found = [
            replace(finding, path=f"[{number}].{finding.path}")
            for number, document in enumerate(documents)
            for finding in validation.lint_task(document)
        ]
        return add_findings(EmptyOk(), found)

    @ApiOperation("Update a task definition", can_save_task_definitions, body=TASK_DEFINITION, reports_findings=True)
    def put(self, request: ConductorRequest) -> HttpResponse:
        # One client registers its workers' definitions only by this call, so a missing definition is created.
        with errors_under("updateTaskDef.taskDefinition"):
            document = coerce_task(request_body.read_object(request))
            given = take_tags(document)
            commands.save_task(document, request.actor.name)
            save_given_tags(TASK_DEF, document, given, request.actor.name)
        return add_findings(EmptyOk(), validation.lint_task(document))


class TaskDefinitionOne(ConductorView):
    """GET, DELETE /api/metadata/taskdefs/{name}: get or delete a definition."""

    @ApiOperation(
        "Get a task definition, with its tags if `metadata` is true",
        can_view_task_definition,
        reply=serializers.TAGGED_TASK_DEFINITION,
        query={"metadata": bool},
    )
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = TaskDefinition.objects.filter(name=name).first()
        if row is None:
            raise NotFound(f"No such taskType found by name: {name}")
        return Json(task_definition_document(row) | requested_tags(request, TASK_DEF, name))

    @ApiOperation("Delete a task definition", can_delete_task_definition)
    def delete(self, request: ConductorRequest, name: str) -> None:
        commands.delete_task(name, request.actor.name)


class Schemas(ConductorView):
    """GET, POST /api/schema: list all schemas (`short` omits their data), or save schemas.

    One client sends an object, others a list.
    """

    @ApiOperation("List all schemas", ALLOW_ALL, reply=ArrayOf(SCHEMA_FIELDS), query={"short": bool})
    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = visible(SchemaDefinition.objects.order_by("name", "version"))
        is_short = request.query.flag("short", default=False)
        return Json([short_schema_document(row) if is_short else schema_document(row) for row in rows])

    @ApiOperation("Create or update schemas", can_save_schemas, body=ArrayOf(SCHEMA_FIELDS), query={"newVersion": bool})
    def post(self, request: ConductorRequest) -> None:
        sent = request_body.read_json(request)
        documents = sent if isinstance(sent, list) else [sent]
        if not all(isinstance(each, dict) for each in documents):
            raise Invalid("The request body must be a schema or a list of schemas.")
        if not documents:
            raise ValidationFailed([ValidationError("saveSchema.schemas", "The list of schemas is empty")])
        with errors_under("saveSchema.schemas"):
            schemas.save_schemas(
                documents, request.actor.name, new_version=request.query.flag("newVersion", default=False)
            )


class SchemaNewest(ConductorView):
    """GET, DELETE /api/schema/{name}: get the newest version, or delete all versions."""

    @ApiOperation("Get the latest version of a schema", can_view_schema, reply=SCHEMA_FIELDS)
    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        return Json(schema_document(schemas.find_schema(name)))

    @ApiOperation("Delete all versions of a schema", can_delete_schema)
    def delete(self, request: ConductorRequest, name: str) -> None:
        schemas.delete_schema(name, None, request.actor.name)


class SchemaOne(ConductorView):
    """GET, DELETE /api/schema/{name}/{version}: get or delete one version."""

    @ApiOperation("Get a schema", can_view_schema, reply=SCHEMA_FIELDS)
    def get(self, request: ConductorRequest, name: str, version: str) -> HttpResponse:
        return Json(schema_document(schemas.find_schema(name, parse_integer(version, "version"))))

    @ApiOperation("Delete a version of a schema", can_delete_schema)
    def delete(self, request: ConductorRequest, name: str, version: str) -> None:
        schemas.delete_schema(name, parse_integer(version, "version"), request.actor.name)


class TestWorkflow(ConductorView):
    """POST /api/workflow/test: execute a workflow with the mock results of the request.

    A list for a task has the results of its attempts, in order, in all iterations of a loop; a list for `ref__2` is for
    that iteration. The test ends with the workflow, or at the first task without a mock result.
    """

    @ApiOperation(
        "Simulate a workflow with mocked task results", can_start_workflow, reply=shapes.WORKFLOW, body=TEST_REQUEST
    )
    def post(self, request: ConductorRequest) -> HttpResponse:
        start_request, script = parse_test_request(request_body.read_object(request))
        with errors_under("testWorkflow.request.workflowDef"):
            return Json(test_workflow(start_request, script, request.actor.name))
