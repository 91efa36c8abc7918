"""Views of polls, the most frequent request of workers."""

from django.http import HttpResponse

from ....core.errors import Invalid
from ....engine.access.token_buckets import POLLS
from ....engine.tasks.task_commands import begin_claim, render_delivered
from ...waiting_replies import reply_after, waiting_client
from ..api_operation import POLL_QUERY, ApiOperation, ArrayOf
from ..openapi import tables as shapes
from ..permissions import can_poll
from ..replies import Json
from ..view import ConductorRequest, ConductorView
from .task_serializers import claimed_task_documents, first_task_reply

MAX_WAIT_MS = 5000
MAX_TYPE_LENGTH, MAX_DOMAIN_LENGTH = 512, 128
"""Longer names have no queue: they are cut, so that the poll can be remembered."""
MAX_TASKS = 1000
"""The maximum number of tasks of one poll."""


class BatchPoll(ConductorView):
    """GET /api/tasks/poll/batch/{taskType}: claim tasks for a worker; `[]` if there are none."""

    operations = {
        "get": ApiOperation(
            "Poll for several tasks",
            permission=can_poll,
            reply=ArrayOf(shapes.TASK),
            query=POLL_QUERY | {"count": int, "timeout": int},
            changes_state=True,
            rate=POLLS,
        ),
    }

    def get(self, request: ConductorRequest, task_type: str) -> HttpResponse:
        query = request.query
        count, wait_ms = query.integer("count", 1), query.integer("timeout", 100)
        if wait_ms > MAX_WAIT_MS:
            raise Invalid("Long Poll Timeout value cannot be more than 5 seconds")
        if count <= 0:
            return Json([])
        claim = begin_claim(
            task_type[:MAX_TYPE_LENGTH],
            worker=query.text("workerid"),
            domain=query.text("domain")[:MAX_DOMAIN_LENGTH],
            count=min(count, MAX_TASKS),
            wait_ms=max(wait_ms, 0),
            client=waiting_client(request),
        )
        render = render_delivered(lambda attempts: Json(claimed_task_documents(attempts)))
        return reply_after(request, claim, render)


class Poll(ConductorView):
    """GET /api/tasks/poll/{taskType}: claim one task for a worker; 204 if there is none."""

    operations = {
        "get": ApiOperation(
            "Poll for one task",
            permission=can_poll,
            reply=shapes.TASK,
            query=POLL_QUERY,
            can_be_empty=True,
            changes_state=True,
            rate=POLLS,
        ),
    }

    def get(self, request: ConductorRequest, task_type: str) -> HttpResponse:
        worker, domain = request.query.text("workerid"), request.query.text("domain")[:MAX_DOMAIN_LENGTH]
        claim = begin_claim(task_type[:MAX_TYPE_LENGTH], worker=worker, domain=domain, client=waiting_client(request))
        return reply_after(request, claim, render_delivered(first_task_reply))
