"""Responses to claims: the task with temporary credentials for its attempt."""

from typing import Any

from ....core.snapshot import Attempt
from ....core.standalone.snapshot import StandaloneTask
from ....engine.standalone.claims import ClaimedTask
from ....insight.standalone.task_status import format_timestamp, status_document, worker_facts
from ..method_scopes import task_credentials
from .task_serializers import definition_document


def claim_reply(claimed: ClaimedTask) -> dict[str, Any]:
    """Return the response to a claim."""
    return {**reclaim_reply(claimed), "task": definition_document(claimed.definition, claimed.standalone.priority)}


def reclaim_reply(claimed: ClaimedTask) -> dict[str, Any]:
    """Return the response to a reclaim, without the definition, which the worker has already."""
    standalone, attempt, definition = claimed
    ends_at = attempt.lease_ends_at or 0
    return {
        "status": status_document(standalone),
        "runId": attempt.number,
        **worker_facts(attempt.worker),
        "takenUntil": format_timestamp(ends_at),
        "credentials": _credentials(standalone, attempt, definition["scopes"], ends_at),
    }


def _credentials(standalone: StandaloneTask, attempt: Attempt, scopes: list[str], ends_at: int) -> dict[str, str]:
    run = f"{standalone.id}/{attempt.number}"
    attempt_scopes = [f"queue:{right}:{run}" for right in ("reclaim-task", "resolve-task", "create-artifact")]
    client_id = f"task-client/{run}/on/{attempt.worker}/until/{ends_at // 1000}"
    return task_credentials(client_id, [*attempt_scopes, *scopes], ends_at)
