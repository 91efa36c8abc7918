"""Task definitions as requests to the engine, and tasks with their status as Taskcluster's documents."""

from typing import Any

from ....core.errors import Invalid
from ....engine.standalone.task_commands import NewTask
from ....insight.standalone.task_status import (
    NAMES_OF_PRIORITIES,
    PRIORITIES,
    format_timestamp,
    queue_facts,
    status_document,
)
from ....models import StandaloneTask
from ..timestamps import add_one_year, parse_timestamp

MINUTE_MS, DAY_MS = 60_000, 86_400_000
MAX_SKEW_MS = 15 * MINUTE_MS
MAX_LIFETIME_MS = 5 * DAY_MS


def parse_task(task_id: str, document: dict[str, Any], now: int) -> NewTask:
    """Return the new task that a definition describes.

    Raises:
        Invalid: when the definition is inconsistent (taskcluster §1.6).
    """
    queue = queue_name(document)
    created, deadline = (parse_timestamp(document[name], name) for name in ("created", "deadline"))
    expires = parse_timestamp(document["expires"], "expires") if "expires" in document else add_one_year(deadline)
    _check_times(created, deadline, expires, now)
    if any(scope.endswith("**") for scope in document["scopes"]):
        raise Invalid("Scopes may not end in '**'.")
    group_id = document.get("taskGroupId", task_id)
    times = {
        "created": format_timestamp(created),
        "deadline": format_timestamp(deadline),
        "expires": format_timestamp(expires),
    }
    full_document = {**document, **queue_facts(queue), "taskGroupId": group_id, **times}
    return NewTask(
        id=task_id,
        group_id=group_id,
        scheduler_id=document["schedulerId"],
        project_id=document["projectId"],
        queue=queue,
        priority=PRIORITIES[document["priority"]],
        retries=int(document["retries"]),
        deadline_at=deadline,
        expires_at=expires,
        requires=document["dependencies"],
        accepts_failure=document["requires"] == "all-resolved",
        tags=document["tags"],
        routes=document["routes"],
        name=document["metadata"]["name"],
        definition={name: value for name, value in full_document.items() if name != "priority"},
    )


def queue_name(document: dict[str, Any]) -> str:
    """Return the queue, which `taskQueueId` or `provisionerId` and `workerType` name.

    Raises:
        Invalid: when the queue is missing or the two differ.
    """
    parts = [document[name] for name in ("provisionerId", "workerType") if name in document]
    queue = document.get("taskQueueId", "/".join(parts))
    facts = queue_facts(queue)
    if "/" not in queue or any(document.get(name, value) != value for name, value in facts.items()):
        raise Invalid("A task must name one queue: by taskQueueId, by provisionerId and workerType, or by both.")
    return queue


def _check_times(created: int, deadline: int, expires: int, now: int) -> None:
    rules = {
        "Created timestamp must be within 15 minutes of now.": abs(created - now) <= MAX_SKEW_MS,
        "Deadline must not be before created.": created <= deadline,
        "Deadline must not be in the past.": deadline >= now,
        "Deadline must be within 5 days of now.": deadline <= now + MAX_LIFETIME_MS + MAX_SKEW_MS,
        "Expires must not be before deadline.": expires >= deadline,
    }
    if broken := [sentence for sentence, holds in rules.items() if not holds]:
        raise Invalid(" ".join(broken))


def definition_document(definition: dict[str, Any], priority: int) -> dict[str, Any]:
    """Return the definition of a task as its author wrote it, with the current priority."""
    return {**definition, "priority": NAMES_OF_PRIORITIES[priority]}


def task_document(row: StandaloneTask) -> dict[str, Any]:
    """Return the definition of a loaded task."""
    return definition_document(row.definition, row.priority)


def status_reply(standalone: Any) -> dict[str, Any]:
    """Return the status of a task, which is the response of most methods."""
    return {"status": status_document(standalone)}


def list_entry(row: StandaloneTask) -> dict[str, Any]:
    """Return a task as an entry of a list."""
    return {"status": status_document(row), "task": task_document(row)}
