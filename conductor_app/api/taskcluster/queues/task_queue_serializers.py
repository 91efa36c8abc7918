"""Documents of task queues, provisioners and workers."""

from typing import Any

from ....core.snapshot import NEVER
from ....insight.standalone.standalone_queues import recent_attempts
from ....insight.standalone.task_status import format_timestamp, queue_facts, worker_facts
from ....models import Attempt, Queue, Worker
from ..tasks.task_serializers import task_document

STABILITY = "experimental"
"""The stability of every queue. Clients cannot declare another one."""


def queue_counts_document(queue: str, pending: int, claimed: int | None = None) -> dict[str, Any]:
    """Return the numbers of pending and of claimed attempts of a queue."""
    document = {**queue_facts(queue), "pendingTasks": pending}
    return document if claimed is None else {**document, "claimedTasks": claimed}


def pending_task_document(attempt: Attempt) -> dict[str, Any]:
    """Return a pending attempt."""
    return {**_task_fields(attempt), "inserted": format_timestamp(attempt.scheduled_at)}


def claimed_task_document(attempt: Attempt) -> dict[str, Any]:
    """Return a claimed attempt."""
    return {
        **_task_fields(attempt),
        **worker_facts(attempt.worker),
        "claimed": format_timestamp(attempt.claimed_at or 0),
    }


def _task_fields(attempt: Attempt) -> dict[str, Any]:
    return {"taskId": attempt.task_id, "runId": attempt.number, "task": task_document(attempt.task.standalone)}


def _lifetime_fields(expires_at: int, last_active_at: int, description: str = "") -> dict[str, Any]:
    times = {"expires": format_timestamp(expires_at), "lastDateActive": format_timestamp(last_active_at)}
    return {"description": description, "stability": STABILITY, **times}


def task_queue_document(queue: Queue) -> dict[str, Any]:
    """Return a task queue."""
    return {"taskQueueId": queue.name, **_lifetime_fields(queue.expires_at, queue.last_active_at, queue.description)}


def worker_type_document(queue: Queue) -> dict[str, Any]:
    """Return a task queue under its older name, worker type."""
    return {**queue_facts(queue.name), **_lifetime_fields(queue.expires_at, queue.last_active_at, queue.description)}


def provisioner_document(row: tuple[str, int, int]) -> dict[str, Any]:
    """Return a provisioner."""
    name, expires_at, last_active_at = row
    return {"provisionerId": name, **_lifetime_fields(expires_at, last_active_at)}


def worker_document(row: Worker) -> dict[str, Any]:
    """Return a worker."""
    document = {
        **queue_facts(row.queue),
        **worker_facts(str(row)),
        "recentTasks": [{"taskId": task_id, "runId": number} for task_id, number in recent_attempts(row)],
        "expires": format_timestamp(row.expires_at),
        "firstClaim": format_timestamp(row.first_claim_at),
        "quarantineUntil": format_timestamp(row.quarantine_until),
        "quarantineDetails": [_quarantine_document(entry) for entry in row.quarantine_log],
    }
    return document | _activity_fields(row)


def _activity_fields(row: Worker) -> dict[str, Any]:
    return {} if row.last_active_at is None else {"lastDateActive": format_timestamp(row.last_active_at)}


def _quarantine_document(entry: dict[str, Any]) -> dict[str, Any]:
    times = {"updatedAt": format_timestamp(entry["at"]), "quarantineUntil": format_timestamp(entry["until"])}
    return {"clientId": entry["by"], **times, "quarantineInfo": entry["why"]}


def worker_list_entry(row: Worker, latest: dict[str, Attempt], now: int) -> dict[str, Any]:
    """Return a worker as an entry of a list."""
    document = {**worker_facts(str(row)), "firstClaim": format_timestamp(row.first_claim_at), **_activity_fields(row)}
    if attempt := latest.get(row.latest):
        document["latestTask"] = {"taskId": attempt.task_id, "runId": attempt.number}
    if now < row.quarantine_until < NEVER:
        document["quarantineUntil"] = format_timestamp(row.quarantine_until)
    return document
