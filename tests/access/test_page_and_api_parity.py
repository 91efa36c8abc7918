"""One function decides for pages and API: every role may do the same through both, with the same effect."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import Group, User
from django.db import models, transaction
from django.test import Client

from conductor_app.access.models import Secret, Variable
from conductor_app.access.permissions import SYSTEM_ROLES, ensure_system_roles
from conductor_app.ai.models import Integration, Prompt
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.events.models import EventHandler, Webhook
from conductor_app.runs.models import Run
from conductor_app.schedules.models import Schedule
from tests.access.users import api_client_of, create_application
from tests.builders import simple
from tests.scenario import run_commit_hooks

pytestmark = [pytest.mark.slow, pytest.mark.one_database, pytest.mark.django_db]
ADMIN = "/admin/conductor"
WORKFLOW = {
    "name": "new",
    "version": 1,
    "schemaVersion": 2,
    "tasks": [{"name": "pack", "taskReferenceName": "pack", "type": "SIMPLE"}],
}
SCHEDULE = {"name": "daily", "cronExpression": "0 0 0 * * *", "startWorkflowRequest": {"name": "order"}}
HANDLER = {
    "name": "on-paid",
    "event": "conductor:paid",
    "active": True,
    "actions": [{"action": "start_workflow", "start_workflow": {"name": "order"}}],
}
WEBHOOK = {"name": "shop", "verifier": "HEADER_BASED", "headers": {"X-Key": "secret"}, "workflowsToStart": {"order": 1}}
STATE: dict[type[models.Model], tuple[str, ...]] = {
    Run: ("name", "status"),
    WorkflowDefinition: ("name", "version", "revision"),
    TaskDefinition: ("name", "revision"),
    Schedule: ("name", "is_paused", "revision"),
    EventHandler: ("name", "is_active", "revision"),
    Webhook: ("name",),
    Secret: ("name",),
    Variable: ("name",),
    Integration: ("name", "kind", "is_enabled"),
    Prompt: ("name", "version", "template"),
}
"""The columns that the operations change."""


class Rows(NamedTuple):
    """The objects that exist before each operation."""

    run: Run
    order: WorkflowDefinition
    pack: TaskDefinition
    hourly: Schedule
    handler: EventHandler
    prompt: Prompt


class Operation(NamedTuple):
    """The same operation by the API and on a page."""

    api: Callable[[Client, Rows], Any]
    page: Callable[[Client, Rows], Any]


def send(method: str, path: str, body: Any = None) -> Callable[[Client, Rows], Any]:
    def call(client: Client, rows: Rows) -> Any:
        address = "/api" + path.format(rows=rows)
        sent = body if isinstance(body, bytes) else json.dumps(body)
        return client.generic(method, address, sent, content_type="application/json")

    return call


def post(path: str, **fields: Any) -> Callable[[Client, Rows], Any]:
    def call(client: Client, rows: Rows) -> Any:
        return client.post(ADMIN + path.format(rows=rows), {"reason": "as agreed", **fields})

    return call


OPERATIONS = {
    "create a workflow": Operation(
        send("POST", "/metadata/workflow", WORKFLOW),
        post("/workflowdefinition/add/", document=json.dumps(WORKFLOW)),
    ),
    "change a workflow": Operation(
        send("PUT", "/metadata/workflow", [{**WORKFLOW, "name": "order", "description": "new"}]),
        post(
            "/workflowdefinition/{rows.order.pk}/edit/",
            document=json.dumps({**WORKFLOW, "name": "order", "description": "new"}),
            save_as="overwrite",
        ),
    ),
    "create a task definition": Operation(
        send("POST", "/metadata/taskdefs", [{"name": "new"}]),
        post("/taskdefinition/add/", document=json.dumps({"name": "new"})),
    ),
    "change a task definition": Operation(
        send("PUT", "/metadata/taskdefs", {"name": "pack", "retryCount": 7}),
        post("/taskdefinition/{rows.pack.pk}/edit/", document=json.dumps({"name": "pack", "retryCount": 7})),
    ),
    "start a workflow": Operation(
        send("POST", "/workflow/order", {}),
        post("/workflowdefinition/{rows.order.pk}/start/", mode="json", input="{}"),
    ),
    "pause a run": Operation(
        send("PUT", "/workflow/{rows.run.pk}/pause"),
        post("/run/{rows.run.pk}/do/pause/"),
    ),
    "terminate a run": Operation(
        send("DELETE", "/workflow/{rows.run.pk}"),
        post("/run/{rows.run.pk}/do/terminate/"),
    ),
    "create a schedule": Operation(
        send("POST", "/scheduler/schedules", SCHEDULE),
        post(
            "/schedule/add/",
            name="daily",
            expression="0 0 0 * * *",
            zone="UTC",
            workflow="order",
            overlap="ALLOW",
        ),
    ),
    "pause a schedule": Operation(
        send("PUT", "/scheduler/schedules/hourly/pause"),
        post("/schedule/{rows.hourly.pk}/do/pause/"),
    ),
    "run a schedule": Operation(
        send("POST", "/scheduler/schedules/hourly/run", {}),
        post("/schedule/{rows.hourly.pk}/do/run/"),
    ),
    "delete a schedule": Operation(
        send("DELETE", "/scheduler/schedules/hourly"),
        post("/schedule/{rows.hourly.pk}/do/delete/"),
    ),
    "create a handler": Operation(
        send("POST", "/event", HANDLER), post("/eventhandler/add/", document=json.dumps(HANDLER))
    ),
    "delete a handler": Operation(
        send("DELETE", "/event/on-order"), post("/eventhandler/{rows.handler.pk}/do/delete/")
    ),
    "create a webhook": Operation(
        send("POST", "/metadata/webhook", WEBHOOK),
        lambda client, rows: client.post(
            "/admin/webhooks/new/",
            {"name": "shop", "verifier": "BASIC", "user": "ann", "starts": "order = 1", "reason": "a new shop"},
        ),
    ),
    "create a secret": Operation(
        send("PUT", "/secrets/NEW", b"value"), post("/secret/add/", name="NEW", value="value")
    ),
    "delete a secret": Operation(send("DELETE", "/secrets/OLD"), post("/secret/OLD/delete/")),
    "create a variable": Operation(
        send("PUT", "/environment/NEW", b"value"), post("/variable/add/", name="NEW", value="value")
    ),
    "delete a variable": Operation(send("DELETE", "/environment/OLD"), post("/variable/OLD/delete/")),
    "create an integration": Operation(
        send("POST", "/integrations/provider/new", {"type": "openai", "enabled": True}),
        lambda client, rows: client.post(
            "/admin/integrations/new/openai/", {"name": "new", "api_key": "k", "is_enabled": "on"}
        ),
    ),
    "change an integration": Operation(
        send("POST", "/integrations/provider/main", {"type": "ollama", "enabled": False}),
        lambda client, rows: client.post("/admin/integrations/of/main/", {"do": "save"}),
    ),
    "delete an integration": Operation(
        send("DELETE", "/integrations/provider/main"),
        lambda client, rows: client.post("/admin/integrations/of/main/", {"do": "delete"}),
    ),
    "create a prompt": Operation(
        send("POST", "/prompts/new", b"Hi"),
        lambda client, rows: client.post("/admin/prompts/new/", {"name": "new", "template": "Hi"}),
    ),
    "change a prompt": Operation(
        send("PUT", "/prompts/greeting", b"Hello"),
        lambda client, rows: client.post(f"/admin/prompts/{rows.prompt.pk}/", {"do": "save", "template": "Hello"}),
    ),
    "delete a prompt": Operation(
        send("DELETE", "/prompts/greeting/versions/1"),
        lambda client, rows: client.post(f"/admin/prompts/{rows.prompt.pk}/", {"do": "delete"}),
    ),
}


@pytest.fixture
def rows(settings, clock):
    settings.CONDUCTOR_API_ACCESS = "token"
    ensure_system_roles()
    root = api_client_of(create_application("root", "ADMIN"))
    root.define(simple("pack"), name="order")
    root.put("/metadata/taskdefs", {"name": "pack"}) if TaskDefinition.objects.exists() else root.post(
        "/metadata/taskdefs", [{"name": "pack"}]
    )
    run_id = root.post("/workflow/order", {}).content.decode()
    assert root.post("/scheduler/schedules", {**SCHEDULE, "name": "hourly"}).status_code == 200
    assert root.post("/event", {**HANDLER, "name": "on-order"}).status_code == 200
    assert root.put("/secrets/OLD", b"x").status_code == 200
    assert root.put("/environment/OLD", b"x").status_code == 200
    assert root.post("/integrations/provider/main", {"type": "ollama"}).status_code == 200
    assert root.post("/prompts/greeting", b"Hi").status_code == 200
    return Rows(
        Run.objects.get(pk=run_id),
        WorkflowDefinition.objects.get(name="order"),
        TaskDefinition.objects.get(name="pack"),
        Schedule.objects.get(),
        EventHandler.objects.get(),
        Prompt.objects.get(),
    )


def browser_of(role: str | None) -> Client:
    """Return the browser of a person with a role. Its session is valid for the API as well."""
    person = User.objects.create_user("person", is_staff=True)
    if role:
        person.groups.add(Group.objects.get(profile__role=role))
    client = Client(raise_request_exception=True)
    client.force_login(person)
    return client


def state() -> dict[str, list[Any]]:
    return {model.__name__: sorted(model._default_manager.values_list(*columns)) for model, columns in STATE.items()}


def effect_of(call: Callable[[Client, Rows], Any], client: Client, rows: Rows) -> Any:
    """Return the state after an operation, None if it is unchanged. The operation is rolled back."""
    before = state()
    with transaction.atomic():
        with run_commit_hooks():
            reply = call(client, rows)
        assert reply.status_code < 500
        after = state()
        transaction.set_rollback(True)
    return None if after == before else after


@pytest.mark.parametrize("role", [*SYSTEM_ROLES, None])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_role_may_do_the_same_on_pages_and_by_the_api(rows, name, role):
    client = browser_of(role)
    operation = OPERATIONS[name]

    by_api, on_page = effect_of(operation.api, client, rows), effect_of(operation.page, client, rows)

    assert (by_api is None) == (on_page is None)
    if role == "ADMIN":
        assert by_api == on_page is not None
