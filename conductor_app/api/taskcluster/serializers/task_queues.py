"""Queues, provisioners and workers as they are shown."""

from typing import Any

from ....core.snapshot import NEVER
from ....insight.standalone import format_timestamp, queue_facts, worker_facts
from ....insight.standalone_queues import recent_attempts
from ....models import Attempt, Queue, Worker
from .tasks import task_document

STABILITY = "experimental"
"""What is said of every queue: nobody can declare another."""


def counts(queue: str, pending: int, claimed: int | None = None) -> dict[str, Any]:
    """How much waits in a queue, and how much of it is claimed."""
    document = {**queue_facts(queue), "pendingTasks": pending}
    return document if claimed is None else {**document, "claimedTasks": claimed}


def pending_task(attempt: Attempt) -> dict[str, Any]:
    """An attempt that waits."""
    return {**_of_task(attempt), "inserted": format_timestamp(attempt.scheduled_at)}


def claimed_task(attempt: Attempt) -> dict[str, Any]:
    """An attempt that a worker holds."""
    return {**_of_task(attempt), **worker_facts(attempt.worker), "claimed": format_timestamp(attempt.claimed_at or 0)}


def _of_task(attempt: Attempt) -> dict[str, Any]:
    return {"taskId": attempt.task_id, "runId": attempt.number, "task": task_document(attempt.task.standalone)}


def _lasting(expires_at: int, last_active_at: int, description: str = "") -> dict[str, Any]:
    moments = {"expires": format_timestamp(expires_at), "lastDateActive": format_timestamp(last_active_at)}
    return {"description": description, "stability": STABILITY, **moments}


def task_queue(queue: Queue) -> dict[str, Any]:
    """A queue."""
    return {"taskQueueId": queue.name, **_lasting(queue.expires_at, queue.last_active_at, queue.description)}


def worker_type(queue: Queue) -> dict[str, Any]:
    """A queue by its older name."""
    return {**queue_facts(queue.name), **_lasting(queue.expires_at, queue.last_active_at, queue.description)}


def provisioner(row: tuple[str, int, int]) -> dict[str, Any]:
    """A provisioner."""
    name, expires_at, last_active_at = row
    return {"provisionerId": name, **_lasting(expires_at, last_active_at)}


def worker(row: Worker) -> dict[str, Any]:
    """A worker."""
    document = {
        **queue_facts(row.queue),
        **worker_facts(str(row)),
        "recentTasks": [{"taskId": task_id, "runId": number} for task_id, number in recent_attempts(row)],
        "expires": format_timestamp(row.expires_at),
        "firstClaim": format_timestamp(row.first_claim_at),
        "quarantineUntil": format_timestamp(row.quarantine_until),
        "quarantineDetails": [_detail(line) for line in row.quarantine_log],
    }
    return document | _activity(row)


def _activity(row: Worker) -> dict[str, Any]:
    return {} if row.last_active_at is None else {"lastDateActive": format_timestamp(row.last_active_at)}


def _detail(line: dict[str, Any]) -> dict[str, Any]:
    moments = {"updatedAt": format_timestamp(line["at"]), "quarantineUntil": format_timestamp(line["until"])}
    return {"clientId": line["by"], **moments, "quarantineInfo": line["why"]}


def listed_worker(row: Worker, latest: dict[str, Attempt], now: int) -> dict[str, Any]:
    """A worker in a list of workers."""
    document = {**worker_facts(str(row)), "firstClaim": format_timestamp(row.first_claim_at), **_activity(row)}
    if attempt := latest.get(row.latest):
        document["latestTask"] = {"taskId": attempt.task_id, "runId": attempt.number}
    if now < row.quarantine_until < NEVER:
        document["quarantineUntil"] = format_timestamp(row.quarantine_until)
    return document
