"""Every operation that stores a payload refuses an oversize one, or stores it outside its row."""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import CharField, TextField

from conductor_app.events.api import webhooks as webhook_views
from conductor_app.events.commands import handlers as event_handlers
from conductor_app.payloads.store import OVERHEAD_BYTES
from conductor_app.processes import sweeps
from conductor_app.site.openapi.pages import build_document
from tests.scenario import run_commit_hooks

pytestmark = pytest.mark.django_db(transaction=True)
LIMIT = 20_000
BIG = "x" * 300_000
PAYLOAD = {"big": BIG}
SIGNATURE = {"X-Key": "secret"}
PARAMETER = re.compile(r"{\w+}")
EVENT = "conductor:orders:paid"


def task(ref: str, type: str = "SIMPLE", **fields: Any) -> dict[str, Any]:
    return {"name": ref, "taskReferenceName": ref, "type": type, **fields}


BRANCHES = [
    [task("a")],
    [task("w", "WAIT")],
    [task("y", "YIELD")],
    [task("h", "HUMAN")],
    [task("p", "PULL_WORKFLOW_MESSAGES")],
]
ORDER = [
    task("fork", "FORK_JOIN", forkTasks=BRANCHES),
    task("join", "JOIN", joinOn=[branch[0]["taskReferenceName"] for branch in BRANCHES]),
    task("last"),
]


class World:
    """A running workflow with one open task of each kind, and the API."""

    def __init__(self, api) -> None:
        self.api = api
        document = {"name": "shop", "verifier": "HEADER_BASED", "headers": SIGNATURE, "workflowsToStart": {"order": 1}}
        self.hook = api.post("/metadata/webhook", document).json()["id"]
        api.define(*ORDER)
        self.run = api.start()
        [self.task] = api.poll("a")

    def id_of(self, ref: str) -> str:
        return next(t["taskId"] for t in self.api.workflow(self.run)["tasks"] if t["referenceTaskName"] == ref)

    def ended_run(self) -> str:
        self.api.delete(f"/workflow/{self.run}")
        return self.run

    def result(self, **fields: Any) -> dict[str, Any]:
        return {"workflowInstanceId": self.run, "taskId": self.task["taskId"], "status": "COMPLETED", **fields}


Send = Callable[[World], Any]
START = {"name": "order", "input": PAYLOAD}
PAYLOADS: dict[str, Send] = {
    "POST /api/workflow": lambda w: w.api.post("/workflow", START),
    "POST /api/workflow/{workflow}": lambda w: w.api.post("/workflow/order", PAYLOAD),
    "POST /api/workflow/start/{name}/{version}": lambda w: w.api.post("/workflow/start/order/1", START),
    "POST /api/workflow/execute/{name}": lambda w: w.api.post("/workflow/execute/order?waitForSeconds=0", PAYLOAD),
    "POST /api/workflow/execute/{name}/{version}": lambda w: w.api.post(
        "/workflow/execute/order/1?waitForSeconds=0", START
    ),
    "POST /api/workflow/{workflow}/rerun": lambda w: w.api.post(
        f"/workflow/{w.ended_run()}/rerun",
        {"reRunFromTaskId": w.task["taskId"], "taskInput": PAYLOAD, "workflowInput": PAYLOAD},
    ),
    "POST /api/insight/runs/{workflow}/plan": lambda w: w.api.post(
        f"/insight/runs/{w.run}/plan",
        {"operation": "skip", "taskReferenceName": "last", "taskInput": PAYLOAD, "taskOutput": PAYLOAD},
    ),
    "POST /api/debug/runs/{workflow}/continue": lambda w: w.api.post(
        f"/debug/runs/{w.run}/continue", {"taskId": w.task["taskId"], "input": PAYLOAD, "output": PAYLOAD}
    ),
    "POST /api/workflow/{workflow}/jump/{ref}": lambda w: w.api.post(f"/workflow/{w.run}/jump/last", PAYLOAD),
    "PUT /api/workflow/{workflow}/skiptask/{ref}": lambda w: w.api.put(
        f"/workflow/{w.run}/skiptask/last", {"taskInput": PAYLOAD, "taskOutput": PAYLOAD}
    ),
    "POST /api/workflow/{workflow}/state": lambda w: w.api.post(
        f"/workflow/{w.run}/state?waitForSeconds=0",
        {"taskReferenceName": "w", "variables": PAYLOAD, "taskResult": w.result(outputData=PAYLOAD)},
    ),
    "POST /api/workflow/{workflow}/variables": lambda w: w.api.post(f"/workflow/{w.run}/variables", PAYLOAD),
    "POST /api/workflow/{workflow}/messages": lambda w: w.api.post(f"/workflow/{w.run}/messages", PAYLOAD),
    "POST /api/workflow/{workflow}/upgrade": lambda w: w.api.post(
        f"/workflow/{w.run}/upgrade", {"name": "order", "version": 1, "workflowInput": PAYLOAD, "taskOutput": PAYLOAD}
    ),
    "POST /api/tasks": lambda w: w.api.post("/tasks", w.result(outputData=PAYLOAD, reasonForIncompletion=BIG)),
    "POST /api/tasks/update-v2": lambda w: w.api.post("/tasks/update-v2", w.result(outputData=PAYLOAD)),
    "POST /api/tasks/{workflow_id}/{ref}/{status}": lambda w: w.api.post(f"/tasks/{w.run}/a/COMPLETED", PAYLOAD),
    "POST /api/tasks/{workflow_id}/{ref}/{status}/sync": lambda w: w.api.post(
        f"/tasks/{w.run}/a/COMPLETED/sync", PAYLOAD
    ),
    "POST /api/tasks/{workflow_id}/{status}/signal": lambda w: w.api.post(f"/tasks/{w.run}/COMPLETED/signal", PAYLOAD),
    "POST /api/tasks/{workflow_id}/{status}/signal/sync": lambda w: w.api.post(
        f"/tasks/{w.run}/COMPLETED/signal/sync", PAYLOAD
    ),
    "POST /api/tasks/{task_id}/log": lambda w: w.api.post(f"/tasks/{w.task['taskId']}/log", BIG),
    "POST /api/queue/update/{workflow}/{ref}/{status}": lambda w: w.api.post(
        f"/queue/update/{w.run}/w/COMPLETED", PAYLOAD
    ),
    "POST /api/queue/update/{workflow}/task/{task_id}/{status}": lambda w: w.api.post(
        f"/queue/update/{w.run}/task/{w.id_of('w')}/COMPLETED", PAYLOAD
    ),
    "POST /api/human/tasks/{task_id}/update": lambda w: w.api.post(
        f"/human/tasks/{w.id_of('h')}/update?complete=false", PAYLOAD
    ),
    "POST /api/human/tasks/update/taskRef": lambda w: w.api.post(
        f"/human/tasks/update/taskRef?workflowId={w.run}&taskRefName=h&complete=false", PAYLOAD
    ),
    "POST /api/event/handleIncomingEvent": lambda w: w.api.post(
        "/event/handleIncomingEvent", {"event": EVENT, "id": "1", **PAYLOAD}
    ),
    "POST /api/scheduler/schedules": lambda w: w.api.post(
        "/scheduler/schedules", {"name": "daily", "cronExpression": "0 0 0 * * *", "startWorkflowRequest": START}
    ),
    "POST /api/workflow/test": lambda w: w.api.post(
        "/workflow/test", {"name": "order", "input": PAYLOAD, "taskRefToMockOutput": {"a": [{"output": PAYLOAD}]}}
    ),
    "POST /api/webhook/{id}": lambda w: w.api.post(f"/webhook/{w.hook}", PAYLOAD, **SIGNATURE),
    "POST /webhook/{id}": lambda w: w.api.client.post(
        f"/webhook/{w.hook}", PAYLOAD, content_type="application/json", headers=SIGNATURE
    ),
}
"""Operations that store a payload, with an oversize one."""
ACCEPTED = {
    "POST /api/tasks", "POST /api/tasks/update-v2", "POST /api/tasks/{workflow_id}/{ref}/{status}",
    "POST /api/tasks/{workflow_id}/{ref}/{status}/sync", "POST /api/tasks/{workflow_id}/{status}/signal",
    "POST /api/tasks/{workflow_id}/{status}/signal/sync", "POST /api/tasks/{task_id}/log",
    "POST /api/queue/update/{workflow}/{ref}/{status}", "POST /api/queue/update/{workflow}/task/{task_id}/{status}",
}  # fmt: skip
"""Reports, which fail their task instead of being refused, and logs, which are cut."""
OTHER_REFUSALS = {"POST /api/token": 404}
"""Operations that refuse the requests of this module before they read the body."""
STREAMS = {
    "POST /api/files", "POST /api/files/{workflow}/{file}/multipart/{upload}/complete",
    "PUT /api/files/content/{workflow}/{file}", "PUT /api/payloads/{path}",
}  # fmt: skip
"""Uploads to the storage, which have limits of their own."""
DOCUMENTS = {
    "POST /api/applications", "PUT /api/applications/{id}", "PUT /api/applications/{id}/tags",
    "POST /api/auth/authorization", "POST /api/debug/runs/{workflow}/breakpoints",
    "POST /api/debug/runs/{workflow}/evaluate", "POST /api/debug/workflows/{name}/versions/{version}/breakpoints",
    "POST /api/definitions/apply", "POST /api/definitions/plan", "POST /api/insight/runs/{workflow}/apply",
    "PUT /api/environment/{key}", "PUT /api/environment/{key}/tags", "POST /api/event", "PUT /api/event",
    "PUT /api/event/{name}/tags", "PUT /api/groups/{id}", "POST /api/groups/{id}/users",
    "POST /api/human/tasks/{task_id}/reassign", "POST /api/human/tasks/search", "POST /api/human/template",
    "POST /api/human/template/bulk", "POST /api/integrations", "POST /api/integrations/provider/{name}",
    "PUT /api/integrations/provider/{name}/tags", "POST /api/integrations/provider/{name}/integration/{model}",
    "POST /api/integrations/provider/{name}/integration/{model}/metrics",
    "PUT /api/integrations/provider/{name}/integration/{model}/tags", "POST /api/metadata/tags/workflow/{name}",
    "PUT /api/metadata/tags/workflow/{name}", "POST /api/metadata/task/{name}/tags",
    "PUT /api/metadata/task/{name}/tags", "POST /api/metadata/taskdefs", "PUT /api/metadata/taskdefs",
    "POST /api/metadata/webhook", "PUT /api/metadata/webhook/{id}", "PUT /api/metadata/webhook/{name}/tags",
    "POST /api/metadata/workflow", "PUT /api/metadata/workflow", "PUT /api/metadata/workflow/{name}/draft",
    "PUT /api/metadata/workflow/{name}/rate-limit",
    "POST /api/metadata/workflow/{name}/tags", "PUT /api/metadata/workflow/{name}/tags",
    "POST /api/metadata/workflow/validate", "PUT /api/model-budgets", "POST /api/prompts",
    "POST /api/prompts/{name}", "PUT /api/prompts/{name}", "PUT /api/prompts/{name}/tags", "POST /api/prompts/test",
    "POST /api/roles", "PUT /api/roles/{name}",
    "PUT /api/scheduler/bulk/pause", "PUT /api/scheduler/bulk/resume", "PUT /api/scheduler/schedules/{name}/tags",
    "POST /api/schema", "PUT /api/secrets/{key}", "PUT /api/secrets/{key}/tags", "POST /api/token",
    "PUT /api/users/{id}", "POST /api/workflow/{workflow}/correlated", "PUT /api/workflow/{workflow}/labels",
    "POST /api/workflow/bulk/delete", "PUT /api/workflow/bulk/pause", "POST /api/workflow/bulk/restart",
    "PUT /api/workflow/bulk/resume", "POST /api/workflow/bulk/retry", "POST /api/workflow/bulk/search",
    "POST /api/workflow/bulk/terminate", "POST /api/workflow/correlated/batch",
}  # fmt: skip
"""Operations on definitions, access and lists of ids, which store no payload: the limit of a request bounds them."""


@pytest.fixture
def world(api, clock, settings) -> World:
    settings.CONDUCTOR_TASK_PAYLOAD_MAX_BYTES = settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = LIMIT
    handler = {"action": "start_workflow", "start_workflow": {"name": "order", "input": {"all": "${$}"}}}
    event_handlers.create_handlers([{"name": "start", "event": EVENT, "actions": [handler], "active": True}], "ann")
    return World(api)


def stored_texts() -> Iterator[tuple[str, int]]:
    """Yield each text column of each table with the length of its longest value."""
    for model in apps.get_app_config("conductor").get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, CharField | TextField):
                with connection.cursor() as cursor:
                    cursor.execute(f'SELECT MAX(LENGTH("{field.column}")) FROM {model._meta.db_table}')
                    yield f"{model.__name__}.{field.name}", cursor.fetchone()[0] or 0


def oversize() -> dict[str, int]:
    return {column: length for column, length in stored_texts() if length > LIMIT + OVERHEAD_BYTES}


@pytest.mark.parametrize("name", PAYLOADS)
def test_an_oversize_payload_is_never_stored_in_a_row(world, name):
    with run_commit_hooks():
        reply = PAYLOADS[name](world)
        sweeps.sweep_once()

    assert oversize() == {}
    assert (reply.status_code in (200, 204)) == (name in ACCEPTED), reply.content
    if name not in ACCEPTED:
        assert reply.status_code in (400, 409, 413), reply.content
        assert b"bytes" in reply.content


@cache
def operations_with_body() -> list[str]:
    """Return the documented operations that read a body."""
    return [
        f"{method.upper()} {path}"
        for path, methods in build_document()["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    ]


def test_every_operation_with_a_body_is_known_to_store_a_payload_or_not():
    assert sorted(operations_with_body()) == sorted({*PAYLOADS, *STREAMS, *DOCUMENTS})


def test_a_request_above_the_limit_is_stored_by_no_operation(api, clock, settings, monkeypatch):
    settings.CONDUCTOR_MAX_REQUEST_BYTES = settings.CONDUCTOR_FILE_MAX_BYTES = LIMIT
    settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = LIMIT
    monkeypatch.setattr(webhook_views, "MAX_BODY_BYTES", LIMIT)

    statuses = {}
    for operation in operations_with_body():
        method, path = operation.split()
        reply = api.client.generic(method, PARAMETER.sub("1", path), json.dumps([BIG]), "application/json")
        statuses[operation] = reply.status_code

    assert {name: status for name, status in statuses.items() if not 400 <= status < 500} == {}
    assert {name: statuses[name] for name in DOCUMENTS if statuses[name] != 413} == OTHER_REFUSALS
    assert oversize() == {}
