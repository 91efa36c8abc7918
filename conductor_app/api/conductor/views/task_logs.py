"""What workers log for their tasks."""

import orjson
from django.http import HttpResponse

from ....engine.tasks import add_log
from ....insight.execution import load_logs
from .. import request_body
from ..replies import EmptyOk, Json, NoContent
from ..view import ConductorRequest, ConductorView


class TaskLogs(ConductorView):
    """GET, POST /api/tasks/{taskId}/log: what was logged, and one more line."""

    def get(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        lines = load_logs(task_id)
        return Json(lines) if lines else NoContent()

    def post(self, request: ConductorRequest, task_id: str) -> HttpResponse:
        add_log(task_id, parse_line(request_body.read_bytes(request)))
        return EmptyOk()


def parse_line(sent: bytes) -> str:
    """A line as it was meant: some clients send it as it is, one as a JSON string (api §8.3)."""
    try:
        value = orjson.loads(sent)
    except ValueError:
        value = None
    return value if isinstance(value, str) else sent.decode(errors="replace")
