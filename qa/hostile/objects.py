"""Objects that hostile requests address: created through the APIs, their ids read from the database."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from django.apps import apps
from django.contrib.auth.models import Group, User

from conductor_app.alerts.commands import create_target, save_alert, save_view
from conductor_app.bulk import commands as bulk_commands
from conductor_app.bulk.commands import BulkRequest
from qa.bench.standalone import new_id
from qa.hostile.accounts import Accounts, hawk_header
from qa.hostile.endpoints import PAGES, PARAMETER, Endpoint

SECRET_NAME, SECRET_VALUE = "HOSTILE", "hostile-secret-value-4711"
NEWEST = 60
MODEL_OF_PAGE = re.compile(r"/admin/(conductor|auth|django_celery_beat)/(\w+)/")
models = SimpleNamespace(**{model.__name__: model for model in apps.get_app_config("conductor").get_models()})
MODELS_OF_PARAMETERS = {
    "attempt_id": models.Attempt, "event_id": models.EventDelivery, "workflow": models.Run, "run_id": models.Run,
    "workflow_id": models.Run, "operation_id": models.BulkOperation, "view_id": models.SavedView,
    "template_id": models.FormTemplate, "webhook_id": models.Webhook, "key_id": models.AccessKey,
    "integration": models.Integration, "model_id": models.IntegrationModel, "prompt_id": models.Prompt,
    "clientId": models.Client, "roleId": models.ScopeRole, "user_id": User,
}  # fmt: skip
WORKFLOW: dict[str, Any] = {
    "name": "hostile_order",
    "version": 1,
    "schemaVersion": 2,
    "ownerEmail": "a@example.org",
    "timeoutSeconds": 0,
    "inputParameters": ["order"],
    "outputParameters": {"paid": "${pay.output.paid}"},
    "tasks": [
        {"name": "pack", "taskReferenceName": "pack", "type": "SIMPLE",
         "inputParameters": {"o": "${workflow.input.order}"}},
        {
            "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
            "forkTasks": [
                [{"name": "pay", "taskReferenceName": "pay", "type": "SIMPLE"}],
                [{"name": "ask", "taskReferenceName": "ask", "type": "HUMAN",
                  "inputParameters": {"__humanTaskDefinition": {"displayName": "Approve"}}}],
                [{"name": "wait", "taskReferenceName": "wait", "type": "WAIT"}],
            ],
        },
        {"name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": ["pay", "ask"]},
        {
            "name": "choose", "taskReferenceName": "choose", "type": "SWITCH", "evaluatorType": "value-param",
            "expression": "e", "inputParameters": {"e": "${pay.output.paid}"},
            "decisionCases": {"true": [{"name": "set", "taskReferenceName": "set", "type": "SET_VARIABLE",
                                        "inputParameters": {"x": 1}}]},
            "defaultCase": [{"name": "end", "taskReferenceName": "end", "type": "TERMINATE",
                             "inputParameters": {"terminationStatus": "COMPLETED"}}],
        },
    ],
}  # fmt: skip
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/metadata/workflow"): WORKFLOW,
    ("PUT", "/api/metadata/workflow"): [WORKFLOW],
    ("POST", "/api/metadata/workflow/validate"): WORKFLOW,
    ("POST", "/api/metadata/taskdefs"): [
        {"name": "pack", "retryCount": 1, "timeoutSeconds": 60, "responseTimeoutSeconds": 30}
    ],
    ("PUT", "/api/metadata/taskdefs"): {"name": "pay", "retryCount": 1, "retryLogic": "FIXED", "timeoutSeconds": 60},
    ("POST", "/api/workflow"): {"name": "hostile_order", "version": 1, "input": {"order": 1}, "priority": 3},
    ("POST", "/api/workflow/<name>"): {"order": 2},
    ("POST", "/api/workflow/test"): {
        "name": "t", "workflowDef": WORKFLOW, "taskRefToMockOutput": {"pack": [{"status": "COMPLETED"}]},
    },
    ("POST", "/api/scheduler/schedules"): {
        "name": "hostile_schedule", "cronExpression": "0 0 0 * * ?", "paused": True,
        "startWorkflowRequest": {"name": "hostile_order", "version": 1},
    },
    ("POST", "/api/event"): {
        "name": "hostile_handler", "event": "conductor:hostile", "active": False,
        "actions": [{"action": "start_workflow", "start_workflow": {"name": "hostile_order"}}],
    },
    ("POST", "/api/metadata/webhook"): {
        "name": "hostile_webhook", "verifier": "HEADER_BASED", "headers": {"X-Key": "k"},
        "workflowsToStart": {"hostile_order": 1},
    },
    ("POST", "/api/schema"): [{"name": "hostile_schema", "version": 1, "type": "JSON", "data": {"type": "object"}}],
    ("POST", "/api/applications"): {"name": "hostile_application"},
    ("PUT", "/api/users/hostile@example.org"): {"name": "Hostile", "roles": ["USER"]},
    ("PUT", "/api/groups/hostile_group"): {"description": "d", "roles": ["USER"]},
    ("POST", "/api/workflow/bulk/pause"): ["x"],
    ("POST", "/api/auth/authorization"): {
        "subject": {"type": "USER", "id": "hostile@example.org"},
        "target": {"type": "WORKFLOW_DEF", "id": "hostile_order"}, "access": ["READ"],
    },
}  # fmt: skip
"""Valid bodies by method and address. Their documents are too deep for a schema to describe them well."""
CREATED = [
    ("POST", "/api/metadata/taskdefs"), ("PUT", "/api/metadata/workflow"), ("POST", "/api/scheduler/schedules"),
    ("POST", "/api/event"), ("POST", "/api/metadata/webhook"), ("POST", "/api/schema"),
    ("POST", "/api/applications"), ("PUT", "/api/users/hostile@example.org"), ("PUT", "/api/groups/hostile_group"),
]  # fmt: skip


@dataclass
class Form:
    """A form of a page with its fields, and the query parameters of the page's links."""

    fields: dict[str, str] = field(default_factory=dict)
    query: set[str] = field(default_factory=set)


@dataclass
class Objects:
    """Ids by parameter name, ids by model of the admin, and forms by address."""

    ids: Mapping[str, Sequence[str]]
    by_model: Mapping[str, Sequence[str]]
    forms: dict[str, Form] = field(default_factory=dict)

    def known(self, parameter: str, template: str = "") -> Sequence[str]:
        """Return ids that a parameter of an address may have."""
        page = MODEL_OF_PAGE.match(template)
        if page and parameter in ("object_id", "pk", "run_id", "task_id", "group_id", "id", "attempt_id"):
            return self.by_model.get(page[2], ())
        return self.ids.get(parameter, ())


class Setup:
    """Creates objects with the rights of an administrator."""

    def __init__(self, port: int, accounts: Accounts) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._port, self._accounts = port, accounts

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        headers = {"X-Authorization": self._accounts.tokens["ADMIN"], "Content-Type": "application/json"}
        return self._request(method, path, None if body is None else json.dumps(body), headers)

    def send_signed(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        client_id, key = next(iter(self._accounts.clients.items()))
        signature = hawk_header(client_id, key, method, path, self._port)
        return self._request(
            method, path, json.dumps(body), {"Authorization": signature, "Content-Type": "application/json"}
        )

    def open_page(self, path: str) -> str:
        """Return a page as an administrator sees it."""
        cookie = f"sessionid={self._accounts.sessions['root']}"
        return self._request("GET", path, None, {"Cookie": cookie})[1].decode(errors="replace")

    def deliver(self, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Send an event without credentials."""
        return self._request("POST", path, '{"a": 1}', {"Content-Type": "application/json", **headers})

    def close(self) -> None:
        self._connection.close()

    def _request(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, bytes]:
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()


def ensure_objects(setup: Setup, runs: int = 5) -> None:
    """Create what hostile requests may have removed, and some new runs and tasks."""
    setup.send("PUT", "/api/metadata/taskdefs", {"name": "ask", "ownerEmail": "a@example.org"})
    for method, path in CREATED:
        setup.send(method, path, BODIES[method, path])
    setup.send("PUT", f"/api/secrets/{SECRET_NAME}", SECRET_VALUE)
    setup.send("PUT", "/api/environment/hostile_variable", "value")
    # The guard refuses the address, so that trials reach nothing.
    configuration = {"api_key": SECRET_VALUE, "base_url": "http://127.0.0.1:9/v1"}
    setup.send("POST", "/api/integrations/provider/hostile_models", {"type": "openai", "configuration": configuration})
    setup.send("POST", "/api/integrations/provider/hostile_models/integration/small", {})
    setup.send("POST", "/api/prompts/hostile_prompt?autoIncrement=true", "Greet ${name}")
    setup.send("GET", "/api/scheduler/admin/resume")
    for number in range(runs):
        setup.send("POST", "/api/workflow", {**BODIES["POST", "/api/workflow"], "correlationId": f"c{number}"})
    _, polled = setup.send("GET", f"/api/tasks/poll/batch/pack?workerid=w&count={max(1, runs // 2)}&timeout=100")
    for task in json.loads(polled or b"[]"):
        setup.send("POST", f"/api/tasks/{task['taskId']}/log", "a line")
        setup.send(
            "POST",
            "/api/tasks",
            {"workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"], "status": "COMPLETED"},
        )
    _ensure_failures_and_events(setup)
    _ensure_standalone_tasks(setup)


def _ensure_failures_and_events(setup: Setup) -> None:
    """Fail a task, send an event to a webhook, and save a form template, a view, an alert and a bulk operation."""
    _, polled = setup.send("GET", "/api/tasks/poll/pack?workerid=w")
    if polled:
        task = json.loads(polled)
        failed = {"status": "FAILED_WITH_TERMINAL_ERROR", "reasonForIncompletion": "No stock."}
        setup.send("POST", "/api/tasks", {**failed, **{name: task[name] for name in ("workflowInstanceId", "taskId")}})
    for webhook in _newest(models.Webhook)[:1]:
        setup.deliver(f"/webhook/{webhook}", {"X-Key": "k"})
    template = {"name": "hostile_template", "version": 1, "jsonSchema": {"type": "object"}, "templateUI": {}}
    setup.send("POST", "/api/human/template", template)
    view = save_view("hostile", {"definition": "hostile_order"}, "hostile", is_shared=True)
    if not models.Alert.objects.filter(view=view).exists():
        target = create_target("email", "hostile", {"addresses": "a@example.org"}, "hostile")
        save_alert(view, "count", 1_000_000, 60, 60, "hostile", targets=[target.pk])
    if not models.BulkOperation.objects.exists():
        bulk_commands.start(BulkRequest("pause", {"definition": "no_such_definition"}, "a reason"), "hostile")


def standalone_task() -> dict[str, Any]:
    """Return the definition of a standalone task."""
    now = datetime.now(UTC)
    metadata = {"name": "t", "description": "", "owner": "a@example.org", "source": "https://example.org"}
    moments = {"created": now.isoformat(), "deadline": (now + timedelta(hours=1)).isoformat()}
    return {"taskQueueId": "hostile/linux", **moments, "payload": {"command": ["x"]}, "metadata": metadata}


def _ensure_standalone_tasks(setup: Setup) -> None:
    for _ in range(3):
        setup.send_signed("PUT", f"/api/queue/v1/task/{new_id()}", standalone_task())
    _, claimed = setup.send_signed(
        "POST", "/api/queue/v1/claim-work/hostile/linux", {"workerGroup": "g", "workerId": "w", "tasks": 2}
    )
    for claim in json.loads(claimed or b"{}").get("tasks", []):
        task, run = claim["status"]["taskId"], claim["runId"]
        expires = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        content = {"storageType": "error", "reason": "file-missing-on-worker", "message": "m", "expires": expires}
        setup.send_signed("POST", f"/api/queue/v1/task/{task}/runs/{run}/artifacts/public/a.txt", content)
    setup.send_signed("PUT", "/api/auth/v1/roles/hostile-role", {"description": "", "scopes": ["a:b"]})


def read_objects() -> Objects:
    """Return the ids of existing objects, newest first."""
    ids: dict[str, list[str]] = defaultdict(list)
    for parameter, model in MODELS_OF_PARAMETERS.items():
        ids[parameter] = _newest(model)
    ids["task_id"] = ids["attempt_id"] + _newest(models.Task)
    ids["taskId"] = _newest(models.StandaloneTask)
    ids["taskGroupId"] = _newest(models.TaskGroup)
    ids["name"] = [
        "hostile_order",
        "pack",
        "hostile_schedule",
        "hostile_handler",
        "hostile_schema",
        SECRET_NAME,
        "public/a.txt",
    ]
    ids["id"] = [
        "hostile@example.org", "hostile_group", "hostile_application", "hostile_webhook", *ids["webhook_id"],
        *_newest(models.Application), *_newest(User)[:5],
    ]  # fmt: skip
    ids |= {
        "version": ["1", "2"], "task_type": ["pack", "pay", "ask"], "taskType": ["pack"], "runId": ["0", "1"],
        "ref": ["pack", "pay", "fork", "ask"], "role": ["USER", "ADMIN"], "taskReferenceName": ["pack", "pay"],
        "status": ["COMPLETED", "FAILED", "IN_PROGRESS"], "event": ["conductor:hostile"], "key": ["hostile_variable"],
        "taskQueueId": ["hostile/linux"], "provisionerId": ["hostile"], "workerType": ["linux"], "workerGroup": ["g"],
        "workerId": ["w"], "workerid": ["w"], "user_id": ["hostile@example.org"], "format": ["csv", "json"],
        "field": ["input", "output", "variables", "definition"], "workflowName": ["hostile_order"],
        "action": ["pause", "resume", "retry", "restart", "terminate", "rerun", "delete"], "correlation_id": ["c0"],
        "correlationId": ["c0"], "operation": ["READ", "WRITE"], "payloadType": ["WORKFLOW_INPUT", "TASK_OUTPUT"],
        "act": ["pause", "resume", "enable", "disable", "delete", "save", "run"], "app_label": ["conductor", "auth"],
        "scheduleName": ["hostile_schedule"], "cronExpression": ["0 0 * * * ?"], "zoneId": ["Europe/Berlin"],
        "query": ["status = 'RUNNING'", "workflowType = 'hostile_order'"], "sort": ["startTime:DESC"], "start": ["0"],
        "size": ["5"], "count": ["1"], "timeout": ["0", "50"], "waitForSeconds": ["0"], "timeoutMillis": ["50"],
        "workflowInstanceId": ids["run_id"], "workflowId": ids["run_id"], "content_type_id": ["1", "7"],
        "group_id": _newest(models.FailureGroup), "alert_id": _newest(models.Alert), "object_id": ids["run_id"],
    }  # fmt: skip
    by_model = {
        str(model._meta.model_name): _newest(model)
        for model in (
            *apps.get_app_config("conductor").get_models(),
            *apps.get_app_config("django_celery_beat").get_models(),
        )
    }
    by_model["solo"] = ids["taskId"]
    return Objects(ids, {**by_model, "user": _newest(User), "group": _newest(models.TaskGroup) + _newest(Group)[:3]})


def _newest(model: Any) -> list[str]:
    return [str(each) for each in model.objects.order_by("-pk").values_list("pk", flat=True)[:NEWEST]]


def read_forms(setup: Setup, endpoints: Sequence[Endpoint], objects: Objects) -> None:
    """Open each page once and note the fields of its forms."""
    for endpoint in endpoints:
        if endpoint.area != PAGES or "logout" in endpoint.template:
            continue
        path = fill(endpoint.template, objects)
        if path is not None:
            objects.forms[endpoint.template] = _parse(setup.open_page(path))


def fill(template: str, objects: Objects) -> str | None:
    """Return an address with ids of existing objects, or None if there are none."""
    values = {name: objects.known(name, template) for name in PARAMETER.findall(template)}
    if not all(values.values()):
        return None
    return PARAMETER.sub(lambda found: quote(values[found[1]][0], safe="/"), template)


class _FormParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.form = Form()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in ("input", "select", "textarea", "button") and found.get("name"):
            self.form.fields.setdefault(str(found["name"]), found.get("value") or "")
        elif tag == "option" and "selected" in found and self.form.fields:
            self.form.fields[list(self.form.fields)[-1]] = found.get("value") or ""
        elif tag == "a" and "?" in (found.get("href") or ""):
            self.form.query |= {name for name, _ in parse_qsl(urlsplit(str(found["href"])).query)}


def _parse(page: str) -> Form:
    parser = _FormParser()
    parser.feed(page)
    return parser.form
