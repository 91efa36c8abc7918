"""Views of task definitions."""

from dataclasses import replace

from django.http import HttpResponse

from ....access.access_types import TASK_DEF
from ....access.permissions import filter_readable
from ....core.document.checks import coerce_task
from ....core.document.checks.field_specs import TASK_DEFINITION
from ....core.errors import NotFound, ValidationError, ValidationFailed
from ....engine.definitions import definition_commands
from ....models import TaskDefinition
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation, ArrayOf
from ..findings import add_findings
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..permissions import can_delete_task_definition, can_save_task_definitions, can_view_task_definition
from ..replies import EmptyOk, Json
from ..request_fields import errors_under
from ..view import ConductorRequest, ConductorView
from .definition_serializers import task_definition_document
from .tag_serializers import take_tags
from .tag_views import requested_tags, save_given_tags


class TaskDefinitions(ConductorView):
    """GET, POST, PUT /api/metadata/taskdefs: list all definitions, save several, or update one."""

    operations = {
        "get": ApiOperation("List all task definitions", permission=ALLOW_ALL, reply=ArrayOf(TASK_DEFINITION)),
        "post": ApiOperation(
            "Create task definitions",
            permission=can_save_task_definitions,
            reply=EMPTY_REPLY,
            body=ArrayOf(TASK_DEFINITION),
            reports_findings=True,
        ),
        "put": ApiOperation(
            "Update a task definition",
            permission=can_save_task_definitions,
            reply=EMPTY_REPLY,
            body=TASK_DEFINITION,
            reports_findings=True,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = filter_readable(request.actor, TaskDefinition.objects.order_by("name"), TASK_DEF)
        return Json([task_definition_document(row) for row in rows])

    def post(self, request: ConductorRequest) -> HttpResponse:
        documents = request_body.read_objects(request)
        if not documents:
            raise ValidationFailed([ValidationError("registerTaskDef.taskDefinitions", "TaskDefList is empty")])
        with errors_under("registerTaskDef.taskDefinitions"):
            documents = [coerce_task(each) for each in documents]
            tags = [take_tags(document) for document in documents]
            definition_commands.save_tasks(documents, request.actor.name)
            for document, given in zip(documents, tags, strict=True):
                save_given_tags(TASK_DEF, document, given, request.actor.name)
        found = [
            replace(finding, path=f"[{number}].{finding.path}")
            for number, document in enumerate(documents)
            for finding in definition_commands.lint_task(document)
        ]
        return add_findings(EmptyOk(), found)

    def put(self, request: ConductorRequest) -> HttpResponse:
        # One client registers its workers' definitions only by this call, so a missing definition is created.
        with errors_under("updateTaskDef.taskDefinition"):
            document = coerce_task(request_body.read_object(request))
            given = take_tags(document)
            definition_commands.save_task(document, request.actor.name)
            save_given_tags(TASK_DEF, document, given, request.actor.name)
        return add_findings(EmptyOk(), definition_commands.lint_task(document))


class TaskDefinitionOne(ConductorView):
    """GET, DELETE /api/metadata/taskdefs/{name}: get or delete a definition."""

    operations = {
        "get": ApiOperation(
            "Get a task definition, with its tags if `metadata` is true",
            permission=can_view_task_definition,
            reply=shapes.TAGGED_TASK_DEFINITION,
            query={"metadata": bool},
        ),
        "delete": ApiOperation("Delete a task definition", permission=can_delete_task_definition, reply=EMPTY_REPLY),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = TaskDefinition.objects.filter(name=name).first()
        if row is None:
            raise NotFound(f"No such taskType found by name: {name}")
        return Json(task_definition_document(row) | requested_tags(request, TASK_DEF, name))

    def delete(self, request: ConductorRequest, name: str) -> HttpResponse:
        definition_commands.delete_task(name, request.actor.name)
        return EmptyOk()
