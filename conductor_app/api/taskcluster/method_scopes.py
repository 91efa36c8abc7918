"""Who calls, and what each method requires of the caller: the seam between the methods and authentication.

A requirement is a template of a scope expression: `<name>` stands for a parameter, and `{"for": name, "in": list,
"each": …}` for one expression an item. Methods whose parameters all stand in their address are asked before anything
else is looked at; the others ask when they know what they need, by `request.require(…)`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.http import HttpRequest

from ... import clock
from ...access import clients, scopes, taskcluster_auth, temporary_credentials
from ...access.taskcluster_auth import Caller
from ...core.errors import Forbidden
from ...engine.access.client_maintenance import record_client_use
from .request_body import read_bytes

ScopeTemplate = str | Mapping[str, Any]
MAX_EXPRESSION_LENGTH = 10_000
"""Characters of an expression that a refusal repeats."""


def _task_action_scopes(verb: str) -> ScopeTemplate:
    """What steering a single task needs: the right over it, or over its project, or the older pair."""
    pair = [f"queue:{verb}-task", "assume:scheduler-id:<schedulerId>/<taskGroupId>"]
    return {
        "AnyOf": [
            f"queue:{verb}-task:<schedulerId>/<taskGroupId>/<taskId>",
            f"queue:{verb}-task-in-project:<projectId>",
            {"AllOf": pair},
        ]
    }


def _scope_for_each_id(scope: str) -> ScopeTemplate:
    return {"AllOf": [{"for": "each", "in": "ids", "each": scope}]}


def _with_granted_scopes(scope: str) -> ScopeTemplate:
    """What giving scopes to somebody needs: to hold them."""
    return {"AllOf": [scope, {"for": "scope", "in": "scopes", "each": "<scope>"}]}


SCOPES_OF_ADDRESS: dict[str, ScopeTemplate] = {
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
    "createArtifact": "queue:create-artifact:<taskId>/<runId>",
    "finishArtifact": "queue:create-artifact:<taskId>/<runId>",
    "artifactInfo": "queue:list-artifacts:<taskId>:<runId>",
    "latestArtifactInfo": "queue:list-artifacts:<taskId>",
    "listArtifacts": "queue:list-artifacts:<taskId>:<runId>",
    "listLatestArtifacts": "queue:list-artifacts:<taskId>",
    "startDownload": "object:download:<objectName>",
    "download": "object:download:<objectName>",
    "object": "object:download:<objectName>",
    "listClients": "auth:list-clients",
    "client": "auth:get-client:<clientId>",
    "resetAccessToken": "auth:reset-access-token:<clientId>",
    "enableClient": "auth:enable-client:<clientId>",
    "disableClient": "auth:disable-client:<clientId>",
    "deleteClient": "auth:delete-client:<clientId>",
    "listRoles": "auth:list-roles",
    "listRoles2": "auth:list-roles",
    "listRoleIds": "auth:list-roles",
    "role": "auth:get-role:<roleId>",
    "deleteRole": "auth:delete-role:<roleId>",
    "expandScopes": "auth:expand-scopes",
    "currentScopes": "auth:current-scopes",
}
"""Required of the caller before anything else is looked at."""

SCOPES_OF_FACTS: dict[str, ScopeTemplate] = {
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
    "tasks": _scope_for_each_id("queue:get-task:<each>"),
    "statuses": _scope_for_each_id("queue:status:<each>"),
    "scheduleTask": _task_action_scopes("schedule"),
    "rerunTask": _task_action_scopes("rerun"),
    "cancelTask": _task_action_scopes("cancel"),
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
    **dict.fromkeys(
        ("getArtifact", "getLatestArtifact", "artifact", "latestArtifact"),
        _scope_for_each_id("queue:get-artifact:<each>"),
    ),
    "createUpload": "object:upload:<projectId>:<objectName>",
    "finishUpload": "object:upload:<projectId>:<objectName>",
    "createClient": _with_granted_scopes("auth:create-client:<clientId>"),
    "updateClient": _with_granted_scopes("auth:update-client:<clientId>"),
    "createRole": _with_granted_scopes("auth:create-role:<roleId>"),
    "updateRole": _with_granted_scopes("auth:update-role:<roleId>"),
}
"""Required when the method knows its facts, which it hands to `request.require`."""

PUBLIC_METHODS = frozenset(("ping", "version", "heartbeat", "lbheartbeat", "authenticateHawk"))
"""Methods that require nothing."""


def authenticate(request: HttpRequest) -> Caller:
    """Who sent the request; raises Unauthenticated and Forbidden."""
    caller = taskcluster_auth.authenticate(request, partial(read_bytes, request))
    if caller.signing_client_id not in ("", clients.ISSUER_CLIENT_ID):
        record_client_use(caller.signing_client_id)
    return caller


def require_scopes(caller: Caller, template: ScopeTemplate, facts: Mapping[str, Any]) -> None:
    """Raise Forbidden unless the caller's scopes satisfy the template, filled in with the facts."""
    required = scopes.render_expression(template, facts)
    lacking = scopes.missing_scopes(required, caller.scopes)
    if lacking is not None:
        raise Forbidden(
            f"Client ID {caller.client_id} does not have sufficient scopes and is missing the following scopes:\n\n"
            f"```\n{scopes.format_expression(lacking)[:MAX_EXPRESSION_LENGTH]}\n```\n\n"
            f"This request requires the client to satisfy the following scope expression:\n\n"
            f"```\n{scopes.format_expression(required)[:MAX_EXPRESSION_LENGTH]}\n```"
        )


def task_credentials(client_id: str, granted_scopes: Sequence[str], ends_at: int) -> Mapping[str, str]:
    """Credentials for a worker that holds an attempt, with these scopes until then."""
    key = clients.issuing_key()
    return temporary_credentials.issue_credentials(
        clients.ISSUER_CLIENT_ID, key, client_id, granted_scopes, start=clock.now(), expiry=ends_at
    )
