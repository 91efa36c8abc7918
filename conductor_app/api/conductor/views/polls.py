"""Polling: what workers ask most often."""

from django.http import HttpResponse

from ....core.errors import Invalid
from ....engine.tasks import claim_tasks
from ...disconnect_check import disconnect_check
from ..replies import Json, NoContent
from ..serializers.tasks import all_handed_out, handed_out
from ..view import ConductorRequest, ConductorView

LONGEST_WAIT_MS = 5000
LONGEST_TYPE, LONGEST_DOMAIN = 512, 128
"""Longer names have no queue: they are cut, so that the poll can be remembered."""
MOST_TASKS = 1000
"""More than this many are never handed out at once, whatever is asked for."""


class BatchPoll(ConductorView):
    """GET /api/tasks/poll/batch/{taskType}: a list of tasks for a worker, `[]` when there are none."""

    def get(self, request: ConductorRequest, task_type: str) -> HttpResponse:
        query = request.query
        count, wait_ms = query.whole("count", 1), query.whole("timeout", 100)
        if wait_ms > LONGEST_WAIT_MS:
            raise Invalid("Long Poll Timeout value cannot be more than 5 seconds")
        if count <= 0:
            return Json([])
        attempts = claim_tasks(
            task_type[:LONGEST_TYPE],
            worker=query.text("workerid"),
            domain=query.text("domain")[:LONGEST_DOMAIN],
            count=min(count, MOST_TASKS),
            wait_ms=max(wait_ms, 0),
            has_left=disconnect_check(request),
        )
        return Json(all_handed_out(attempts))


class Poll(ConductorView):
    """GET /api/tasks/poll/{taskType}: one task for a worker, or 204."""

    def get(self, request: ConductorRequest, task_type: str) -> HttpResponse:
        worker, domain = request.query.text("workerid"), request.query.text("domain")[:LONGEST_DOMAIN]
        attempts = claim_tasks(
            task_type[:LONGEST_TYPE], worker=worker, domain=domain, has_left=disconnect_check(request)
        )
        return Json(handed_out(attempts[0])) if attempts else NoContent()
