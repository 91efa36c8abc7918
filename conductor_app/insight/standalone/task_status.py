"""Standalone tasks in Taskcluster's format: task status, runs and task groups.

API replies and Pulse messages share these documents. The functions accept core values and rows alike: both have the
same attribute names.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ...core.standalone.rules import attempt_state

PRIORITIES = {
    "highest": 7, "very-high": 6, "high": 5, "medium": 4, "low": 3, "very-low": 2, "lowest": 1,
}  # fmt: skip
NAMES_OF_PRIORITIES = {number: name for name, number in PRIORITIES.items()}


@lru_cache(maxsize=10_000)
def format_timestamp(ms: int) -> str:
    """Format epoch milliseconds as RFC 3339 in UTC, with exactly three decimals."""
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()}.{rest:03d}Z"


def displayed_state(task_status: str, attempt_status: str | None) -> str:
    """Return the status of the last attempt while the task is active, because it is more specific."""
    return attempt_status if task_status == "ACTIVE" and attempt_status else task_status


def queue_facts(queue: str) -> dict[str, str]:
    """Return the three identifiers of a queue."""
    provisioner_id, _, worker_type = queue.partition("/")
    return {"provisionerId": provisioner_id, "workerType": worker_type, "taskQueueId": queue}


def worker_facts(worker: str) -> dict[str, str]:
    """Return the two identifiers of a worker, or an empty mapping without a worker."""
    group, _, id = worker.partition("/")
    return {"workerGroup": group, "workerId": id} if worker else {}


def status_document(standalone: Any) -> dict[str, Any]:
    """Return the status of a task with its runs."""
    runs = [run_document(attempt) for attempt in standalone.attempts]
    return {
        "taskId": standalone.id,
        **queue_facts(standalone.queue),
        "schedulerId": standalone.scheduler_id,
        "projectId": standalone.project_id,
        "taskGroupId": standalone.group_id,
        "priority": NAMES_OF_PRIORITIES[standalone.priority],
        "deadline": format_timestamp(standalone.deadline_at),
        "expires": format_timestamp(standalone.expires_at),
        "retriesLeft": standalone.retries_left,
        "state": runs[-1]["state"] if runs else "unscheduled",
        "runs": runs,
    }


def run_document(attempt: Any) -> dict[str, Any]:
    """Return an attempt as one of Taskcluster's runs."""
    document = {
        "runId": attempt.number,
        "state": attempt_state(attempt),
        "reasonCreated": attempt.cause,
        "scheduled": format_timestamp(attempt.scheduled_at),
        **worker_facts(attempt.worker),
    }
    if attempt.started_at is not None:
        document["started"] = format_timestamp(attempt.started_at)
    if attempt.lease_ends_at is not None:
        document["takenUntil"] = format_timestamp(attempt.lease_ends_at)
    if attempt.ended_at is not None:
        document |= {"reasonResolved": attempt.reason, "resolved": format_timestamp(attempt.ended_at)}
    return document


def group_document(group: Any) -> dict[str, Any]:
    """Return a task group."""
    document = {
        "taskGroupId": group.id,
        "schedulerId": group.scheduler_id,
        "expires": format_timestamp(group.expires_at),
    }
    return document | ({"sealed": format_timestamp(group.sealed_at)} if group.sealed_at is not None else {})
