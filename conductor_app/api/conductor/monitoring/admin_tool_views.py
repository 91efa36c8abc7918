"""Views for administrators: queue sizes, repeated decisions, repairs."""

from django.http import HttpResponse

from ....core.document.checks.values import IntegerOf, MapOf
from ....engine.queues import queue_commands
from ....engine.runs import skip_and_jump
from ....insight.runs.execution import wire_task
from ....models import Attempt
from ..api_operation import PLAIN_TEXT, ApiOperation, ArrayOf
from ..openapi import tables as shapes
from ..permission_rules import ADMINISTRATORS_ONLY
from ..permissions import can_control_run, can_requeue_task_type
from ..queues.queue_views import queue_sizes
from ..replies import Json, PlainText
from ..view import ConductorRequest, ConductorView

MAX_TASKS = 1000
"""Tasks that one page may have."""


class OpenTasks(ConductorView):
    """GET /api/admin/task/{taskDefName}: list a page of the open tasks of a task type, oldest first."""

    operations = {
        "get": ApiOperation(
            "List the open tasks of a task type",
            permission=ADMINISTRATORS_ONLY,
            reply=ArrayOf(shapes.TASK),
            query={"start": int, "count": int},
        ),
    }

    def get(self, request: ConductorRequest, name: str) -> HttpResponse:
        start, count = max(request.query.integer("start", 0), 0), request.query.integer("count", 100)
        found = Attempt.objects.of_runs().open().filter(name=name).order_by("scheduled_at", "run_id", "id")
        found = found.select_related("task", "run").defer("run__input", "run__output", "run__variables")
        return Json([wire_task(attempt) for attempt in found[start : start + min(max(count, 0), MAX_TASKS)]])


class Requeue(ConductorView):
    """POST /api/tasks/queue/requeue/{taskType}: notify waiting workers, and return the number of pending tasks."""

    operations = {
        "post": ApiOperation(
            "Notify the workers that wait for a task type", permission=can_requeue_task_type, reply=PLAIN_TEXT
        ),
    }

    def post(self, request: ConductorRequest, task_type: str) -> HttpResponse:
        return PlainText(str(queue_commands.notify_queue(task_type, request.actor.name)))


class RequeueWorkflow(ConductorView):
    """POST /api/admin/sweep/requeue/{workflowId}: evaluate the workflow now."""

    operations = {
        "post": ApiOperation("Reevaluate a workflow now", permission=can_control_run, reply=PLAIN_TEXT),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        skip_and_jump.reevaluate_run(workflow, request.actor.name, "requeue")
        return PlainText(f"true.{workflow}")


class VerifyAndRepair(ConductorView):
    """POST /api/admin/consistency/verifyAndRepair/{workflowId}: evaluate the workflow.

    The reply says whether anything changed.
    """

    operations = {
        "post": ApiOperation(
            "Reevaluate a workflow and return whether anything changed", permission=can_control_run, reply=PLAIN_TEXT
        ),
    }

    def post(self, request: ConductorRequest, workflow: str) -> HttpResponse:
        repaired = skip_and_jump.reevaluate_run(workflow, request.actor.name, "verify and repair")
        return PlainText(str(repaired).lower())


class AdminQueues(ConductorView):
    """GET /api/admin/queues: return the number of pending tasks of each queue. Events need no queue."""

    operations = {
        "get": ApiOperation(
            "Get the sizes of all queues, for administrators",
            permission=ADMINISTRATORS_ONLY,
            reply=MapOf(MapOf(IntegerOf())),
            query={"verbose": bool},
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        request.query.flag("verbose", False)
        return Json({"conductor": queue_sizes()})
