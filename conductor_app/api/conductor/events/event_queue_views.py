"""Views of the queue by which clients complete waiting tasks. There is no broker: a message takes effect at once."""

from contextlib import suppress

from django.http import HttpResponse

from ....core.document.checks.values import IntegerOf, MapOf, read_mapping, read_text
from ....core.errors import Invalid, NotFound
from ....core.reports import Report
from ....engine.tasks.task_commands import report_by_ref, report_task
from ....insight.runs.execution import find_run
from .. import request_body
from ..api_operation import EMPTY_REPLY, ApiOperation
from ..permission_rules import ALLOW_ALL
from ..permissions import can_complete_by_reference, can_report_task
from ..replies import EmptyOk, Json
from ..tasks.task_serializers import parse_outcome
from ..view import ConductorRequest, ConductorView

QUEUE_STATUSES = ("COMPLETED", "FAILED")
"""The statuses that have a queue."""
QUEUE_NAME_FORMAT = "conductor:{}"


class EventQueueSizes(ConductorView):
    """GET /api/queue/size: return the size of each queue, which is 0 because messages take effect at once."""

    operations = {
        "get": ApiOperation(
            "Get the sizes of the queues that complete waiting tasks", permission=ALLOW_ALL, reply=MapOf(IntegerOf())
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({QUEUE_NAME_FORMAT.format(status): 0 for status in QUEUE_STATUSES})


class EventQueues(ConductorView):
    """GET /api/queue/: get the queue of each status."""

    operations = {
        "get": ApiOperation(
            "List the queues that complete waiting tasks", permission=ALLOW_ALL, reply=MapOf(read_text)
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json({status: QUEUE_NAME_FORMAT.format(status) for status in QUEUE_STATUSES})


class EventForReference(ConductorView):
    """POST /api/queue/update/{workflowId}/{taskRef}/{status}: end the open task with this reference name."""

    operations = {
        "post": ApiOperation(
            "Complete a waiting task by its reference name",
            permission=can_complete_by_reference,
            reply=EMPTY_REPLY,
            body=read_mapping,
        ),
    }

    def post(self, request: ConductorRequest, workflow: str, ref: str, status: str) -> HttpResponse:
        report = parse_message(request, status)
        find_run(workflow)
        # It stands for a message in a queue, for which no task may be waiting.
        with suppress(NotFound):
            report_by_ref(workflow, ref, report, request.actor.name)
        return EmptyOk()


class EventForTask(ConductorView):
    """POST /api/queue/update/{workflowId}/task/{taskId}/{status}: end this task, if it is open."""

    operations = {
        "post": ApiOperation(
            "Complete a waiting task", permission=can_report_task, reply=EMPTY_REPLY, body=read_mapping
        ),
    }

    def post(self, request: ConductorRequest, workflow: str, task_id: str, status: str) -> HttpResponse:
        report_task(workflow, task_id, parse_message(request, status), request.actor.name)
        return EmptyOk()


def parse_message(request: ConductorRequest, status: str) -> Report:
    """Return the report that a message contains.

    Raises:
        Invalid: when the status has no queue.
    """
    if status not in QUEUE_STATUSES:
        raise Invalid(f"There is no queue for the status {status[:100]}. Queues exist for {', '.join(QUEUE_STATUSES)}.")
    output = request_body.read_object(request) if request_body.read_bytes(request) else {}
    return Report(outcome=parse_outcome(status), output=output, merges=True)
