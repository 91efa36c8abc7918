"""Views of task logs."""

import orjson
from django.http import HttpResponse

from ....engine.tasks.task_commands import add_log
from ....insight.runs.execution import load_logs
from .. import request_body
from ..api_operation import EMPTY_REPLY, PLAIN_TEXT, ApiOperation, ArrayOf
from ..openapi import tables as shapes
from ..permissions import can_log_task, can_view_task
from ..replies import EmptyOk, Json, NoContent
from ..view import ConductorRequest, ConductorView


class TaskLogs(ConductorView):
    """GET, POST /api/tasks/{taskId}/log: get the log, or add a line."""

    operations = {
        "get": ApiOperation(
            "Get the log of a task", permission=can_view_task, reply=ArrayOf(shapes.SENT_LOG), can_be_empty=True
        ),
        "post": ApiOperation(
            "Add a line to the log of a task", permission=can_log_task, reply=EMPTY_REPLY, body=PLAIN_TEXT
        ),
    }

    def get(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        lines = load_logs(task_id)
        return Json(lines) if lines else NoContent()

    def post(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        add_log(task_id, parse_line(request_body.read_text(request)))
        return EmptyOk()


def parse_line(sent: bytes) -> str:
    """Return a log line: some clients send it as it is, one as a JSON string (api §8.3)."""
    try:
        value = orjson.loads(sent)
    except ValueError:
        value = None
    return value if isinstance(value, str) else sent.decode(errors="replace")
