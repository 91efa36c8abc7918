"""The caller of a method and the scopes that the method requires.

A requirement is a template of a scope expression: `<name>` stands for a parameter, and `{"for": name, "in": list,
"each": …}` for one expression per item. A method whose parameters are all in its path is authorized before its body is
read; other methods call `request.require(…)` when they have the facts.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.http import HttpRequest

from ... import clock
from ...access import clients, scopes, taskcluster_auth, temporary_credentials
from ...access.quotas import ANONYMOUS, caller_of_client
from ...access.taskcluster_auth import Caller
from ...core.errors import Forbidden
from ...engine.access.client_maintenance import record_client_use
from ...engine.access.token_buckets import POLLS, SEARCHES, STARTS, Rate
from .request_body import read_bytes

ScopeTemplate = str | Mapping[str, Any]
MAX_EXPRESSION_LENGTH = 10_000
"""Characters of an expression that a refusal repeats."""


def _task_action_scopes(verb: str) -> ScopeTemplate:
    """Return the scopes to control a single task: for the task, for its project, or the older pair of scopes."""
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
    """Add the requirement that the caller has the scopes that it gives."""
    return {"AllOf": [scope, {"for": "scope", "in": "scopes", "each": "<scope>"}]}


RATE_BY_METHOD = {"createTask": STARTS, "claimWork": POLLS, "claimTask": POLLS}


class ApiMethod(NamedTuple):
    """A method of the API with its name in Taskcluster's reference.

    `scopes`: required before the body is read, with parameters of the path. `scopes_of_facts`: required by
    `request.require` when the view knows the facts. A method that is not `is_public` declares one of them.
    """

    name: str
    scopes: ScopeTemplate | None = None
    scopes_of_facts: ScopeTemplate | None = None
    is_public: bool = False

    @property
    def rate(self) -> Rate | None:
        """Return the quota of callers that the method counts for."""
        return SEARCHES if self.name.startswith("list") else RATE_BY_METHOD.get(self.name)


GET_ARTIFACT_SCOPES: ScopeTemplate = _scope_for_each_id("queue:get-artifact:<each>")
TASK_QUEUE_COUNTS_SCOPES: ScopeTemplate = {
    "AllOf": ["queue:pending-count:<taskQueueId>", "queue:claimed-count:<taskQueueId>"]
}
CREATE_TASK_SCOPES: ScopeTemplate = {
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
}
TASKS_SCOPES: ScopeTemplate = _scope_for_each_id("queue:get-task:<each>")
STATUSES_SCOPES: ScopeTemplate = _scope_for_each_id("queue:status:<each>")
SCHEDULE_TASK_SCOPES: ScopeTemplate = _task_action_scopes("schedule")
RERUN_TASK_SCOPES: ScopeTemplate = _task_action_scopes("rerun")
CANCEL_TASK_SCOPES: ScopeTemplate = _task_action_scopes("cancel")
CHANGE_TASK_PRIORITY_SCOPES: ScopeTemplate = {
    "AnyOf": ["queue:change-task-priority:<taskId>", "queue:change-task-priority-in-queue:<taskQueueId>"]
}
CLAIM_WORK_SCOPES: ScopeTemplate = {
    "AllOf": ["queue:claim-work:<taskQueueId>", "queue:worker-id:<workerGroup>/<workerId>"]
}
CLAIM_TASK_SCOPES: ScopeTemplate = {
    "AllOf": ["queue:claim-task:<provisionerId>/<workerType>", "queue:worker-id:<workerGroup>/<workerId>"]
}
TASK_QUEUE_COUNTS_BATCH_SCOPES: ScopeTemplate = {
    "AllOf": [
        {"for": "each", "in": "ids", "each": "queue:pending-count:<each>"},
        {"for": "each", "in": "ids", "each": "queue:claimed-count:<each>"},
    ]
}
DECLARE_WORKER_SCOPES: ScopeTemplate = {
    "AllOf": [
        {
            "for": "property",
            "in": "properties",
            "each": "queue:declare-worker:<provisionerId>/<workerType>/<workerGroup>/<workerId>#<property>",
        }
    ]
}
CREATE_CLIENT_SCOPES: ScopeTemplate = _with_granted_scopes("auth:create-client:<clientId>")
UPDATE_CLIENT_SCOPES: ScopeTemplate = _with_granted_scopes("auth:update-client:<clientId>")
CREATE_ROLE_SCOPES: ScopeTemplate = _with_granted_scopes("auth:create-role:<roleId>")
UPDATE_ROLE_SCOPES: ScopeTemplate = _with_granted_scopes("auth:update-role:<roleId>")


def authenticate(request: HttpRequest) -> Caller:
    """Return the caller of a request.

    Raises:
        Unauthenticated: when the signature is invalid
        Forbidden: when the client is disabled.
    """
    caller = taskcluster_auth.authenticate(request, partial(read_bytes, request))
    if caller.signing_client_id not in ("", clients.ISSUER_CLIENT_ID):
        record_client_use(caller.signing_client_id)
    return caller


def quota_caller(caller: Caller) -> str:
    """Return the caller whose quotas apply: the client, also for temporary credentials that it has issued.

    The credentials of a task are a caller of their own.
    """
    if clients.is_access_open():
        return ANONYMOUS
    is_issued_by_client = caller.signing_client_id not in ("", clients.ISSUER_CLIENT_ID)
    return caller_of_client(caller.signing_client_id if is_issued_by_client else caller.client_id)


def require_scopes(caller: Caller, template: ScopeTemplate, facts: Mapping[str, Any]) -> None:
    """Check the caller's scopes against a template that the facts fill in.

    Raises:
        Forbidden: when the scopes are not sufficient.
    """
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
    """Return temporary credentials with these scopes for the worker of an attempt."""
    key = clients.issuing_keys()[0]
    return temporary_credentials.issue_credentials(
        clients.ISSUER_CLIENT_ID, key, client_id, granted_scopes, start=clock.now(), expiry=ends_at
    )
