"""Who calls, and what each method requires of the caller: the seam between the methods and authentication.

A requirement is a template of a scope expression: `<name>` stands for a parameter, and `{"for": name, "in": list,
"each": …}` for one expression an item. Methods whose parameters all stand in their address are asked before anything
else is looked at; the others ask when they know what they need, by `request.require(…)`.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from ... import conf
from ...access import origins
from ...core.errors import Forbidden

Template = str | Mapping[str, Any]


def _steering(verb: str) -> Template:
    """What steering a single task needs: the right over it, or over its project, or the older pair."""
    pair = [f"queue:{verb}-task", "assume:scheduler-id:<schedulerId>/<taskGroupId>"]
    return {
        "AnyOf": [
            f"queue:{verb}-task:<schedulerId>/<taskGroupId>/<taskId>",
            f"queue:{verb}-task-in-project:<projectId>",
            {"AllOf": pair},
        ]
    }


def _each(scope: str) -> Template:
    return {"AllOf": [{"for": "each", "in": "ids", "each": scope}]}


AT_ONCE: dict[str, Template] = {
    "task": "queue:get-task:<taskId>",
    "status": "queue:status:<taskId>",
    "listDependentTasks": "queue:list-dependent-tasks:<taskId>",
    "getTaskGroup": "queue:list-task-group:<taskGroupId>",
    "listTaskGroup": "queue:list-task-group:<taskGroupId>",
    "reclaimTask": "queue:reclaim-task:<taskId>/<runId>",
    "reportCompleted": "queue:resolve-task:<taskId>/<runId>",
    "reportFailed": "queue:resolve-task:<taskId>/<runId>",
    "reportException": "queue:resolve-task:<taskId>/<runId>",
    "pendingTasks": "queue:pending-count:<taskQueueId>",
    "taskQueueCounts": {"AllOf": ["queue:pending-count:<taskQueueId>", "queue:claimed-count:<taskQueueId>"]},
    "listPendingTasks": "queue:pending-list:<taskQueueId>",
    "listClaimedTasks": "queue:claimed-list:<taskQueueId>",
    "listTaskQueues": "queue:list-task-queues",
    "getTaskQueue": "queue:get-task-queue:<taskQueueId>",
    "listProvisioners": "queue:list-provisioners",
    "getProvisioner": "queue:get-provisioner:<provisionerId>",
    "listWorkerTypes": "queue:list-worker-types:<provisionerId>",
    "getWorkerType": "queue:get-worker-type:<provisionerId>/<workerType>",
    "listWorkers": "queue:list-workers:<provisionerId>/<workerType>",
    "getWorker": "queue:get-worker:<provisionerId>/<workerType>/<workerGroup>/<workerId>",
    "quarantineWorker": "queue:quarantine-worker:<provisionerId>/<workerType>/<workerGroup>/<workerId>",
}
"""Required of the caller before anything else is looked at."""

LATER: dict[str, Template] = {
    "createTask": {
        "AllOf": [
            {"for": "scope", "in": "scopes", "each": "<scope>"},
            {"for": "route", "in": "routes", "each": "queue:route:<route>"},
            "queue:create-task:project:<projectId>",
            "queue:scheduler-id:<schedulerId>",
            {
                "AnyOf": [
                    {
                        "for": "priority",
                        "in": "priorities",
                        "each": "queue:create-task:<priority>:<provisionerId>/<workerType>",
                    }
                ]
            },
        ]
    },
    "tasks": _each("queue:get-task:<each>"),
    "statuses": _each("queue:status:<each>"),
    "scheduleTask": _steering("schedule"),
    "rerunTask": _steering("rerun"),
    "cancelTask": _steering("cancel"),
    "changeTaskPriority": {
        "AnyOf": ["queue:change-task-priority:<taskId>", "queue:change-task-priority-in-queue:<taskQueueId>"]
    },
    "sealTaskGroup": "queue:seal-task-group:<schedulerId>/<taskGroupId>",
    "cancelTaskGroup": "queue:cancel-task-group:<schedulerId>/<taskGroupId>",
    "changeTaskGroupPriority": "queue:change-task-group-priority:<schedulerId>/<taskGroupId>",
    "claimWork": {"AllOf": ["queue:claim-work:<taskQueueId>", "queue:worker-id:<workerGroup>/<workerId>"]},
    "claimTask": {
        "AllOf": ["queue:claim-task:<provisionerId>/<workerType>", "queue:worker-id:<workerGroup>/<workerId>"]
    },
    "taskQueueCountsBatch": {
        "AllOf": [
            {"for": "each", "in": "ids", "each": "queue:pending-count:<each>"},
            {"for": "each", "in": "ids", "each": "queue:claimed-count:<each>"},
        ]
    },
    "declareWorker": {
        "AllOf": [
            {
                "for": "property",
                "in": "properties",
                "each": "queue:declare-worker:<provisionerId>/<workerType>/<workerGroup>/<workerId>#<property>",
            }
        ]
    },
}
"""Required when the method knows its facts, which it hands to `request.require`."""

PUBLIC = frozenset(("ping", "version", "heartbeat", "lbheartbeat"))
"""Methods that require nothing."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who calls, with the scopes that this one holds."""

    client_id: str
    scopes: Sequence[str] = ()


ANYBODY = Caller("anonymous", ("*",))
"""On loopback, where no login is asked for."""


def caller_of(request: HttpRequest) -> Caller:
    """Who sent the request; raises Unauthenticated and Forbidden."""
    if conf.api_access == "open":
        origins.refuse_foreign_pages(request)
        return ANYBODY
    return Caller("anonymous")


def require(caller: Caller, template: Template, facts: Mapping[str, Any]) -> None:
    """Raise Forbidden unless the caller's scopes satisfy the template, filled in with the facts."""
    if "*" not in caller.scopes:
        raise Forbidden(f"Client ID {caller.client_id} does not have sufficient scopes.")


def task_credentials(client_id: str, scopes: Sequence[str], ends_at: int) -> dict[str, str]:
    """Credentials for a worker that holds an attempt, with these scopes until then."""
    return {"clientId": client_id, "accessToken": secrets.token_urlsafe(33), "certificate": ""}
