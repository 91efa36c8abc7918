"""Every address of the reference (api §1, §2.1) is served, or stands here with the reason why not."""

import re

import pytest
from django.urls import resolve

SERVED = """
POST   /workflow
POST   /workflow/{name}
POST   /workflow/execute/{name}/{version}
GET    /workflow/{id}
GET    /workflow/{id}/status
GET    /workflow/{id}/tasks
GET    /workflow/{name}/correlated/{correlationId}
POST   /workflow/{name}/correlated
GET    /workflow/running/{name}
PUT    /workflow/decide/{id}
PUT    /workflow/{id}/pause
PUT    /workflow/{id}/resume
PUT    /workflow/{id}/skiptask/{taskRef}
POST   /workflow/{id}/rerun
POST   /workflow/{id}/restart
POST   /workflow/{id}/retry
POST   /workflow/{id}/resetcallbacks
DELETE /workflow/{id}
DELETE /workflow/{id}/remove
DELETE /workflow/{id}/terminate-remove
GET    /workflow/search
GET    /workflow/search-v2
GET    /workflow/search-by-tasks
GET    /workflow/search-by-tasks-v2
GET    /workflow/externalstoragelocation
GET    /workflow/external-storage-location
POST   /workflow/test
POST   /workflow/{id}/messages
PUT    /workflow/bulk/pause
PUT    /workflow/bulk/resume
POST   /workflow/bulk/retry
POST   /workflow/bulk/restart
POST   /workflow/bulk/terminate
DELETE /workflow/bulk/remove
DELETE /workflow/bulk/terminate-remove
POST   /workflow/bulk/search
GET    /tasks/poll/{taskType}
GET    /tasks/poll/batch/{taskType}
POST   /tasks
POST   /tasks/update-v2
POST   /tasks/{workflowId}/{taskRef}/{status}
POST   /tasks/{workflowId}/{taskRef}/{status}/sync
POST   /tasks/{workflowId}/{status}/signal
POST   /tasks/{workflowId}/{status}/signal/sync
GET    /tasks/{taskId}
POST   /tasks/{taskId}/log
GET    /tasks/{taskId}/log
GET    /tasks/queue/sizes
GET    /tasks/queue/size
GET    /tasks/queue/all
GET    /tasks/queue/all/verbose
GET    /tasks/queue/polldata
GET    /tasks/queue/polldata/all
POST   /tasks/queue/requeue/{taskType}
GET    /tasks/search
GET    /tasks/search-v2
GET    /tasks/externalstoragelocation
GET    /tasks/external-storage-location
POST   /metadata/workflow
PUT    /metadata/workflow
POST   /metadata/workflow/validate
GET    /metadata/workflow/{name}
GET    /metadata/workflow
GET    /metadata/workflow/latest-versions
GET    /metadata/workflow/names
GET    /metadata/workflow/names-and-versions
GET    /metadata/workflow/{name}/versions
DELETE /metadata/workflow/{name}/{version}
POST   /metadata/taskdefs
PUT    /metadata/taskdefs
GET    /metadata/taskdefs
GET    /metadata/taskdefs/{name}
DELETE /metadata/taskdefs/{name}
POST   /event
PUT    /event
DELETE /event/{name}
GET    /event
GET    /event/{event}
GET    /queue/size
GET    /queue/
POST   /queue/update/{workflowId}/{taskRef}/{status}
POST   /queue/update/{workflowId}/task/{taskId}/{status}
GET    /admin/config
GET    /admin/task/{taskDefName}
POST   /admin/sweep/requeue/{workflowId}
POST   /admin/consistency/verifyAndRepair/{workflowId}
GET    /admin/queues
GET    /health
GET    /version
GET    /environment
GET    /environment/{key}
GET    /secrets
POST   /secrets
GET    /secrets/v2
GET    /secrets/{key}
PUT    /secrets/{key}
DELETE /secrets/{key}
GET    /secrets/{key}/exists
POST   /scheduler/schedules
GET    /scheduler/schedules
GET    /scheduler/schedules/search
GET    /scheduler/schedules/{name}
DELETE /scheduler/schedules/{name}
PUT    /scheduler/schedules/{name}/pause
PUT    /scheduler/schedules/{name}/resume
PUT    /scheduler/bulk/pause
PUT    /scheduler/bulk/resume
GET    /scheduler/nextFewSchedules
GET    /scheduler/admin/pause
GET    /scheduler/admin/resume
GET    /scheduler/admin/requeue
GET    /scheduler/search/executions
POST   /files
GET    /files/{wf}/{file}
GET    /files/{wf}/{file}/upload-url
GET    /files/{wf}/{file}/download-url
PUT    /files/content/{wf}/{file}
GET    /files/content/{wf}/{file}
POST   /files/{wf}/{file}/upload-complete
POST   /files/{wf}/{file}/multipart
GET    /files/{wf}/{file}/multipart/{uploadId}/part/{n}
POST   /files/{wf}/{file}/multipart/{uploadId}/complete
DELETE /files/{wf}/{file}/multipart/{uploadId}
"""

SERVED_BESIDE_THE_API = """
GET    /health
GET    /actuator/health
GET    /actuator/info
GET    /actuator/prometheus
GET    /api-docs
GET    /swagger-ui/index.html
POST   /webhook/{id}
"""

SERVED_OF_ORKES = """
GET    /prompts
POST   /prompts/
POST   /prompts/test
GET    /prompts/{name}
POST   /prompts/{name}
PUT    /prompts/{name}
DELETE /prompts/{name}
GET    /prompts/{name}/versions
DELETE /prompts/{name}/versions/{version}
GET    /prompts/{name}/tags
PUT    /prompts/{name}/tags
DELETE /prompts/{name}/tags
GET    /integrations/
POST   /integrations/
GET    /integrations/all
GET    /integrations/def
GET    /integrations/def/{name}
GET    /integrations/provider
GET    /integrations/provider/{name}
POST   /integrations/provider/{name}
DELETE /integrations/provider/{name}
GET    /integrations/provider/{name}/metrics
GET    /integrations/provider/{name}/tags
PUT    /integrations/provider/{name}/tags
DELETE /integrations/provider/{name}/tags
GET    /integrations/provider/{name}/integration
GET    /integrations/provider/{name}/integration/all
GET    /integrations/provider/{name}/integration/{api}
POST   /integrations/provider/{name}/integration/{api}
DELETE /integrations/provider/{name}/integration/{api}
GET    /integrations/provider/{name}/integration/{api}/metrics
POST   /integrations/provider/{name}/integration/{api}/metrics
GET    /integrations/provider/{name}/integration/{api}/tags
PUT    /integrations/provider/{name}/integration/{api}/tags
DELETE /integrations/provider/{name}/integration/{api}/tags
GET    /integrations/provider/{name}/integration/{api}/prompt
POST   /integrations/provider/{name}/integration/{api}/prompt/{prompt}
POST   /human/tasks/search
GET    /human/tasks/getTaskDisplayNames
POST   /human/tasks/update/taskRef
DELETE /human/tasks/delete
DELETE /human/tasks/delete/{taskId}
GET    /human/tasks/{taskId}
GET    /human/tasks/{taskId}/conductorTask
POST   /human/tasks/{taskId}/claim
POST   /human/tasks/{taskId}/externalUser/{userId}
POST   /human/tasks/{taskId}/release
POST   /human/tasks/{taskId}/reassign
POST   /human/tasks/{taskId}/skip
POST   /human/tasks/{taskId}/update
GET    /human/template
POST   /human/template
POST   /human/template/bulk
GET    /human/template/{humanTaskId}
DELETE /human/template/{name}
GET    /human/template/{name}/{version}
DELETE /human/template/{name}/{version}
POST   /token
GET    /token/userInfo
POST   /workflow/execute/{name}
GET    /workflow/execute/{name}
POST   /workflow/start/{name}/{version}
POST   /workflow/{id}/variables
POST   /workflow/{id}/state
POST   /workflow/{id}/upgrade
POST   /workflow/{id}/jump/{taskRef}
POST   /workflow/correlated/batch
POST   /workflow/bulk/delete
GET    /workflow/{name}/correlated
POST   /schema
GET    /schema
GET    /schema/{name}
GET    /schema/{name}/{version}
DELETE /schema/{name}
DELETE /schema/{name}/{version}
GET    /metadata/workflow/{name}/tags
POST   /metadata/workflow/{name}/tags
PUT    /metadata/workflow/{name}/tags
DELETE /metadata/workflow/{name}/tags
GET    /metadata/task/{name}/tags
POST   /metadata/task/{name}/tags
PUT    /metadata/task/{name}/tags
DELETE /metadata/task/{name}/tags
GET    /metadata/tags
GET    /metadata/tags/workflow/{name}
GET    /metadata/workflow/{name}/rate-limit
PUT    /metadata/workflow/{name}/rate-limit
DELETE /metadata/workflow/{name}/rate-limit
GET    /scheduler/schedules/{name}/tags
PUT    /scheduler/schedules/{name}/tags
DELETE /scheduler/schedules/{name}/tags
GET    /scheduler/schedules/tags
GET    /scheduler/schedules/{name}/pause
GET    /scheduler/schedules/{name}/resume
POST   /scheduler/admin/pause
GET    /secrets-v2
GET    /secrets/{key}/tags
PUT    /secrets/{key}/tags
DELETE /secrets/{key}/tags
GET    /secrets/clearLocalCache
GET    /secrets/clearRedisCache
PUT    /environment/{key}
DELETE /environment/{key}
GET    /environment/{key}/tags
PUT    /environment/{key}/tags
DELETE /environment/{key}/tags
GET    /event/handler/{name}
POST   /event/handleIncomingEvent
GET    /event/{name}/tags
PUT    /event/{name}/tags
DELETE /event/{name}/tags
GET    /event/execution
GET    /event/execution/{name}
GET    /event/message
GET    /event/message/{event}
GET    /users
GET    /users/{id}
PUT    /users/{id}
DELETE /users/{id}
GET    /users/{id}/permissions
GET    /users/{id}/checkPermissions
GET    /groups
GET    /groups/{id}
PUT    /groups/{id}
DELETE /groups/{id}
GET    /groups/{id}/permissions
GET    /groups/{id}/users
POST   /groups/{id}/users/{userId}
DELETE /groups/{id}/users/{userId}
GET    /applications
POST   /applications
GET    /applications/{id}
PUT    /applications/{id}
DELETE /applications/{id}
GET    /applications/{id}/accessKeys
POST   /applications/{id}/accessKeys
DELETE /applications/{id}/accessKeys/{keyId}
POST   /applications/{id}/roles/{role}
DELETE /applications/{id}/roles/{role}
GET    /applications/{id}/tags
PUT    /applications/{id}/tags
DELETE /applications/{id}/tags
GET    /applications/key/{accessKeyId}
POST   /auth/authorization
DELETE /auth/authorization
GET    /auth/authorization/{type}/{id}
GET    /roles
GET    /metadata/webhook
POST   /metadata/webhook
GET    /metadata/webhook/{id}
PUT    /metadata/webhook/{id}
DELETE /metadata/webhook/{id}
GET    /metadata/webhook/{id}/tags
PUT    /metadata/webhook/{id}/tags
DELETE /metadata/webhook/{id}/tags
POST   /webhook/{id}
"""

LEFT_OUT = {
    "the agent module: of another product, optional there": """
        POST   /agent/compile
        POST   /agent/inspect-plan
        POST   /agent/deploy
        POST   /agent/start
        POST   /agent/{id}/respond
        POST   /agent/{id}/stop
        POST   /agent/{id}/signal
        POST   /agent/{id}/tasks
        POST   /agent/events/{id}
        POST   /agent/execution
        POST   /agent/execution/{id}/complete
        POST   /agent/executions/{id}/restart
        POST   /agent/executions/{id}/retry
        POST   /agent/executions/{id}/rerun
        POST   /agent/executions/prune
        POST   /agent/executions/bulk/restart
        POST   /agent/executions/bulk/retry
        POST   /agent/executions/bulk/terminate
        POST   /agent/tasks/{id}/{ref}/{status}
        GET    /agent/list
        GET    /agent/stream/{id}
        GET    /agent/executions
        GET    /agent/executions/search
        GET    /agent/executions/{id}
        GET    /agent/executions/{id}/full
        GET    /agent/executions/{id}/tasks
        GET    /agent/execution/{id}
        GET    /agent/{id}/status
        GET    /agent/{name}
        GET    /agent/definitions/{name}
        GET    /agent/tasks/{id}/log
        PUT    /agent/{id}/pause
        PUT    /agent/{id}/resume
        PUT    /agent/executions/bulk/pause
        PUT    /agent/executions/bulk/resume
        DELETE /agent/{name}
        DELETE /agent/{id}/cancel
        DELETE /agent/executions/{id}
        DELETE /agent/executions/{id}/record
        GET    /providers/status
        GET    /skills/{name}
        GET    /a2a/{name}""",
    "of one payload store of the original: ours hands out addresses under /payloads": """
        GET    /external/postgres/{path}""",
    "gone from the original: its Java client's runner never calls them": """
        GET    /tasks/queue/{type}/{id}
        POST   /tasks/{id}/ack""",
    "events come over the sinks that the settings name: none are configured through the API": """
        GET    /event/queue/config
        GET    /event/queue/config/{type}/{name}
        PUT    /event/queue/config/{type}/{name}
        DELETE /event/queue/config/{type}/{name}
        GET    /event/queue/connectivity""",
    "products of their own: remote services, a gateway, worker code, importers": """
        GET    /registry/service
        GET    /gateway/config/auth
        GET    /worker-code
        POST   /workflow/document-store/upload
        POST   /metadata/workflow-importer/import-bpm
        POST   /metadata/workflow-task-defs/upload""",
    "a probe of the hosted service": """
        GET    /scheduler/test/timeout""",
}


def operations(table: str, prefix: str = "/api") -> list[tuple[str, str]]:
    """Return the operations of a table as (method, path)."""
    return [(method, prefix + address) for method, address in map(str.split, table.strip().splitlines())]


def is_served(method: str, address: str) -> bool:
    """Return whether a route with exactly this shape leads to a view that supports the method."""
    found = resolve(re.sub(r"{\w+}", "given", address))
    # A literal segment must not match a parameter: /workflow/search is not /workflow/<name>.
    if "/" + re.sub(r"<[^>]+>", "{}", found.route) != re.sub(r"{\w+}", "{}", address):
        return False
    view = getattr(found.func, "view_class", None)
    return hasattr(view, method.lower()) if view else method == "GET"


def unserved(wanted: list[tuple[str, str]]) -> list[str]:
    return [f"{method} {address}" for method, address in wanted if not is_served(method, address)]


@pytest.mark.parametrize("table", [SERVED, SERVED_OF_ORKES], ids=["of the original", "of Orkes, called by its clients"])
def test_every_documented_operation_is_served(table):
    assert unserved(operations(table)) == []


def test_every_documented_path_outside_the_api_is_served():
    assert unserved(operations(SERVED_BESIDE_THE_API, prefix="")) == []


@pytest.mark.parametrize("reason", LEFT_OUT)
def test_documented_exclusions_are_accurate(reason):
    left_out = operations(LEFT_OUT[reason])

    assert unserved(left_out) == [f"{method} {address}" for method, address in left_out]
