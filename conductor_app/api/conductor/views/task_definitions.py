"""Task definitions: kept, shown, forgotten."""

from django.http import HttpResponse

from ....access.access_types import TASK_DEF
from ....access.permissions import filter_readable
from ....core.errors import Complaint, NotFound, ValidationFailed
from ....core.language.checks import typed_task
from ....engine import definitions
from ....models import TaskDefinition
from .. import body
from ..replies import Empty, Json
from ..serializers.definitions import task_definition
from ..serializers.requests import complaints_at
from ..view import ConductorRequest, ConductorView


class TaskDefinitions(ConductorView):
    """GET, POST, PUT /api/metadata/taskdefs: all definitions, several new or changed ones, one new or changed one."""

    def get(self, request: ConductorRequest) -> HttpResponse:
        rows = filter_readable(request.actor, TaskDefinition.objects.order_by("name"), TASK_DEF)
        return Json([task_definition(row) for row in rows])

    def post(self, request: ConductorRequest) -> HttpResponse:
        documents = body.documents(request)
        if not documents:
            raise ValidationFailed([Complaint("registerTaskDef.taskDefinitions", "TaskDefList is empty")])
        with complaints_at("registerTaskDef.taskDefinitions"):
            definitions.save_tasks([typed_task(each) for each in documents], request.actor.name)
        return Empty()

    def put(self, request: ConductorRequest) -> HttpResponse:
        # One client registers its workers' definitions by this call alone: what does not exist is created.
        with complaints_at("updateTaskDef.taskDefinition"):
            definitions.save_task(typed_task(body.document(request)), request.actor.name)
        return Empty()


class TaskDefinitionOne(ConductorView):
    """GET, DELETE /api/metadata/taskdefs/{name}: one definition."""

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        row = TaskDefinition.objects.filter(name=name).first()
        if row is None:
            raise NotFound(f"No such taskType found by name: {name}")
        return Json(task_definition(row))

    def delete(self, request: ConductorRequest, name: str) -> HttpResponse:
        definitions.delete_task(name, request.actor.name)
        return Empty()
