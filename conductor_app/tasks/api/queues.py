"""Views of queues: sizes and pollers."""

from typing import Any

from django.db.models import Count
from django.http import HttpResponse

from ....access.access_types import READ, TASK_DEF
from ....access.conductor_auth import Actor
from ....access.permissions import filter_readable
from ....core.document.checks.values import IntegerOf, MapOf
from ....core.step_types.queued import queue_name
from ....models import Attempt, Poller
from ..api_operation import QUEUE_QUERY, TASK_TYPE_QUERY, ApiOperation, ArrayOf
from ..openapi import tables as shapes
from ..permission_rules import ALLOW_ALL
from ..permissions import can_view_queue
from ..replies import Json
from ..view import ConductorRequest, ConductorView


def queue_sizes() -> dict[str, int]:
    """Return the number of pending attempts of each queue that is not empty."""
    counted = Attempt.objects.of_runs().pending().values_list("queue").annotate(Count("id")).order_by("queue")
    return dict(counted)


def readable_queue_sizes(actor: Actor) -> dict[str, int]:
    """Return the sizes of the queues whose task type the actor may read."""
    return {queue: size for queue, size in queue_sizes().items() if can_view_type(actor, queue.rpartition(":")[2])}


def can_view_type(actor: Actor, task_type: str) -> bool:
    return actor.permissions.allows(READ, TASK_DEF, task_type)


class QueueSizes(ConductorView):
    """GET /api/tasks/queue/sizes: return the number of pending tasks of the requested task types."""

    operations = {
        "get": ApiOperation(
            "Get the sizes of task queues", permission=can_view_queue, reply=MapOf(IntegerOf()), query=TASK_TYPE_QUERY
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        request.query.required("taskType")
        size_by_queue = queue_sizes()
        return Json({name: size_by_queue.get(name, 0) for name in request.query.texts("taskType")})


class QueueSize(ConductorView):
    """GET /api/tasks/queue/size: return the number of pending tasks of one queue.

    The query names its type, domain, isolation group and name space.
    """

    operations = {
        "get": ApiOperation(
            "Get the size of a task queue",
            permission=can_view_queue,
            reply=IntegerOf(),
            query=TASK_TYPE_QUERY | QUEUE_QUERY,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        queue_parts = (query.text(name) for name in ("domain", "executionNamespace", "isolationGroupId"))
        return Json(Attempt.objects.of_runs().pending(queue_name(query.required("taskType"), *queue_parts)).count())


class AllQueues(ConductorView):
    """GET /api/tasks/queue/all: return the number of pending tasks of each queue."""

    operations = {
        "get": ApiOperation("Get the sizes of all task queues", permission=ALLOW_ALL, reply=MapOf(IntegerOf())),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(readable_queue_sizes(request.actor))


class AllQueuesInDetail(ConductorView):
    """GET /api/tasks/queue/all/verbose: return the queue sizes by shard.

    There is one; a poll removes a task from its queue.
    """

    operations = {
        "get": ApiOperation(
            "Get the sizes of all task queues by shard", permission=ALLOW_ALL, reply=MapOf(MapOf(MapOf(IntegerOf())))
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            {queue: {"a": {"size": size, "uacked": 0}} for queue, size in readable_queue_sizes(request.actor).items()}
        )


class PollData(ConductorView):
    """GET /api/tasks/queue/polldata: list the workers that poll a task type, with the time of their last poll."""

    operations = {
        "get": ApiOperation(
            "Get the latest polls for a task type",
            permission=can_view_queue,
            reply=ArrayOf(shapes.POLL_DATA),
            query=TASK_TYPE_QUERY,
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(_poll_data(Poller.objects.filter(task_type=request.query.required("taskType"))))


class AllPollData(ConductorView):
    """GET /api/tasks/queue/polldata/all: list all polling workers, with the time of their last poll."""

    operations = {
        "get": ApiOperation(
            "Get the latest polls for all task types", permission=ALLOW_ALL, reply=ArrayOf(shapes.POLL_DATA)
        ),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(_poll_data(filter_readable(request.actor, Poller.objects.all(), TASK_DEF, "task_type")))


def _poll_data(pollers: Any) -> list[dict[str, Any]]:
    rows = pollers.order_by("task_type", "domain", "worker").values_list("task_type", "domain", "worker", "polled_at")
    return [{"queueName": task_type, "lastPollTime": polled_at}
            | ({"domain": domain} if domain else {}) | ({"workerId": worker} if worker else {})
            for task_type, domain, worker, polled_at in rows]  # fmt: skip
