"""Views that show the state of queues, and what keeps their tasks waiting."""

from typing import Any

from django.http import HttpResponse

from .... import clock
from ....access.access_types import READ, TASK_DEF
from ....insight.queues.queue_detail import QueueDetail, QueueLimit, WaitingAttempt, is_polling, queue_detail
from ....insight.queues.queue_states import QueueState, limits_used, list_queues
from ....models import Attempt
from ..api_operation import ApiOperation
from ..openapi import insight_tables
from ..permission_rules import ALLOW_ALL, RequiresAccess
from ..replies import Json
from ..view import ConductorRequest, ConductorView
from .queue_views import can_view_type

Document = dict[str, Any]


def _task_type_of_queue(request: Any, url_kwargs: dict[str, str]) -> list[dict[str, str]]:
    return [{TASK_DEF: url_kwargs["queue"].rpartition(":")[2]}]


can_view_queue_in_address = RequiresAccess(((READ, TASK_DEF),), _task_type_of_queue)


class QueueStates(ConductorView):
    """GET /api/insight/queues: list the state of each queue; the queue with the oldest pending task comes first."""

    operations = {
        "get": ApiOperation("List the state of all queues", permission=ALLOW_ALL, reply=insight_tables.QUEUE_STATES),
    }

    def get(self, request: ConductorRequest) -> HttpResponse:
        now = clock.now()
        states = [state for state in list_queues() if can_view_type(request.actor, state.name.rpartition(":")[2])]
        limits = limits_used(states)
        return Json({"queues": [_state_document(state, limits.get(state.name), now) for state in states]})


class QueueInsight(ConductorView):
    """GET /api/insight/queues/{queue}: get pending tasks in dispatch order, tasks in progress, pollers, limits."""

    operations = {
        "get": ApiOperation("Explain a queue", permission=can_view_queue_in_address, reply=insight_tables.QUEUE_DETAIL),
    }

    def get(self, request: ConductorRequest, queue: str) -> HttpResponse:
        now = clock.now()
        return Json(_detail_document(queue_detail(queue, now), now))


def _state_document(state: QueueState, limit: tuple[int, int] | None, now: int) -> Document:
    facts = {"oldestPendingSince": state.oldest_at, "lastPollTime": state.polled_at}
    known = {name: value for name, value in facts.items() if value is not None}
    return {
        "name": state.name,
        "pending": state.counted,
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
