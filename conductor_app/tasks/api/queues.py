"""Views of queues: their sizes, their pollers, and what keeps their tasks waiting."""

from typing import Any

from django.db.models import Count
from django.http import HttpResponse

from ...access.authentication import Actor
from ...access.permissions import READ, TASK_DEF
from ...access.visibility import visible
from ...core.document.fields import IntegerOf, MapOf
from ...core.step_types.base import queue_name
from ...runs.models import Attempt
from ...utils import clock
from ...web.api import permissions as targets
from ...web.api.operations import QUEUE_QUERY, TASK_TYPE_QUERY, ApiOperation, ArrayOf, Json
from ...web.api.permissions import ALLOW_ALL, RequiresAccess, requires
from ...web.api.view import ConductorRequest, ConductorView
from ..models import Poller
from ..queries.queue_states import QueueState, limits_used, list_queues
from ..queries.queues import QueueDetail, QueueLimit, WaitingAttempt, is_polling, queue_detail
from . import serializers

can_view_queue = requires(READ, TASK_DEF, targets.named_in_query(TASK_DEF, "taskType"))


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

    @ApiOperation("Get the sizes of task queues", can_view_queue, reply=MapOf(IntegerOf()), query=TASK_TYPE_QUERY)
    def get(self, request: ConductorRequest) -> HttpResponse:
        request.query.required("taskType")
        size_by_queue = queue_sizes()
        return Json({name: size_by_queue.get(name, 0) for name in request.query.texts("taskType")})


class QueueSize(ConductorView):
    """GET /api/tasks/queue/size: return the number of pending tasks of one queue.

    The query names its type, domain, isolation group and name space.
    """

    @ApiOperation(
        "Get the size of a task queue", can_view_queue, reply=IntegerOf(), query=TASK_TYPE_QUERY | QUEUE_QUERY
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        query = request.query
        queue_parts = (query.text(name) for name in ("domain", "executionNamespace", "isolationGroupId"))
        return Json(Attempt.objects.of_runs().pending(queue_name(query.required("taskType"), *queue_parts)).count())


class AllQueues(ConductorView):
    """GET /api/tasks/queue/all: return the number of pending tasks of each queue."""

    @ApiOperation("Get the sizes of all task queues", ALLOW_ALL, reply=MapOf(IntegerOf()))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(readable_queue_sizes(request.actor))


class AllQueuesInDetail(ConductorView):
    """GET /api/tasks/queue/all/verbose: return the queue sizes by shard.

    There is one; a poll removes a task from its queue.
    """

    @ApiOperation("Get the sizes of all task queues by shard", ALLOW_ALL, reply=MapOf(MapOf(MapOf(IntegerOf()))))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(
            {queue: {"a": {"size": size, "uacked": 0}} for queue, size in readable_queue_sizes(request.actor).items()}
        )


class PollData(ConductorView):
    """GET /api/tasks/queue/polldata: list the workers that poll a task type, with the time of their last poll."""

    @ApiOperation(
        "Get the latest polls for a task type",
        can_view_queue,
        reply=ArrayOf(serializers.POLL_DATA),
        query=TASK_TYPE_QUERY,
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(_poll_data(Poller.objects.filter(task_type=request.query.required("taskType"))))


class AllPollData(ConductorView):
    """GET /api/tasks/queue/polldata/all: list all polling workers, with the time of their last poll."""

    @ApiOperation("Get the latest polls for all task types", ALLOW_ALL, reply=ArrayOf(serializers.POLL_DATA))
    def get(self, request: ConductorRequest) -> HttpResponse:
        return Json(_poll_data(visible(Poller.objects.all())))


def _poll_data(pollers: Any) -> list[dict[str, Any]]:
    rows = pollers.order_by("task_type", "domain", "worker").values_list("task_type", "domain", "worker", "polled_at")
    return [{"queueName": task_type, "lastPollTime": polled_at}
            | ({"domain": domain} if domain else {}) | ({"workerId": worker} if worker else {})
            for task_type, domain, worker, polled_at in rows]  # fmt: skip


Document = dict[str, Any]


def _task_type_of_queue(request: ConductorRequest, url_kwargs: dict[str, str]) -> list[dict[str, str]]:
    return [{TASK_DEF: url_kwargs["queue"].rpartition(":")[2]}]


can_view_queue_in_address = RequiresAccess(((READ, TASK_DEF),), _task_type_of_queue)


class QueueStates(ConductorView):
    """GET /api/insight/queues: list the state of each queue; the queue with the oldest pending task comes first."""

    @ApiOperation("List the state of all queues", ALLOW_ALL, reply=serializers.QUEUE_STATES)
    def get(self, request: ConductorRequest) -> HttpResponse:
        now = clock.now()
        states = [state for state in list_queues() if can_view_type(request.actor, state.name.rpartition(":")[2])]
        limits = limits_used(states)
        return Json({"queues": [_state_document(state, limits.get(state.name), now) for state in states]})


class QueueInsight(ConductorView):
    """GET /api/insight/queues/{queue}: get pending tasks in dispatch order, tasks in progress, pollers, limits."""

    @ApiOperation("Explain a queue", can_view_queue_in_address, reply=serializers.QUEUE_DETAIL)
    def get(self, request: ConductorRequest, queue: str) -> HttpResponse:
        now = clock.now()
        return Json(_detail_document(queue_detail(queue, now), now))


def _state_document(state: QueueState, limit: tuple[int, int] | None, now: int) -> Document:
    facts = {"oldestPendingSince": state.oldest_at, "lastPollTime": state.polled_at}
    known = {name: value for name, value in facts.items() if value is not None}
    return {
        "name": state.name,
        "pending": state.pending,
        "delayed": state.delayed,
        "pendingIsLowerBound": state.has_more,
        "inProgress": state.leased,
        "pollers": state.pollers,
        "isPolled": state.is_polled(now),
        "isNeglected": state.is_neglected(now),
        **known,
        **({"limit": {"used": limit[0], "allowed": limit[1]}} if limit else {}),
    }


def _detail_document(detail: QueueDetail, now: int) -> Document:
    estimated = {"ratePerSecond": detail.rate, "drainsInMs": detail.drains_in_ms}
    hold = detail.hold
    paused = {"by": hold.by, "reason": hold.reason, "since": hold.held_at} if hold else None
    return {
        "name": detail.name,
        "pending": detail.pending,
        "delayed": detail.delayed,
        "inProgress": detail.leased,
        **({"paused": paused} if paused else {}),
        **{name: value for name, value in estimated.items() if value is not None},
        "limits": [_limit_document(limit) for limit in detail.limits],
        "pendingTasks": [_waiting_document(waiting) for waiting in detail.waiting],
        "tasksInProgress": [
            {**_task_document(attempt), "workerId": attempt.worker, "claimedAt": attempt.claimed_at}
            for attempt in detail.running
        ],
        "pollers": [
            {"workerId": poller.worker, "lastPollTime": poller.polled_at, "isPolling": is_polling(poller, now)}
            for poller in detail.pollers
        ],
    }


def _limit_document(limit: QueueLimit) -> Document:
    reopens = {"reopensAt": limit.reopens_at} if limit.reopens_at else {}
    return {"sentence": limit.sentence, "used": limit.used, "allowed": limit.allowed, **reopens}


def _waiting_document(waiting: WaitingAttempt) -> Document:
    estimated = {} if waiting.eta_ms is None else {"estimatedMs": waiting.eta_ms}
    since = {"position": waiting.place, "pendingSince": waiting.attempt.pending_since}
    return {**_task_document(waiting.attempt), **since, "priority": waiting.attempt.priority, **estimated}


def _task_document(attempt: Attempt) -> Document:
    run = {"workflowId": attempt.run_id, "workflowName": attempt.run.name} if attempt.run else {}
    return {"taskId": attempt.pk, "taskReferenceName": str(attempt.task), **run}
