"""Exact names and prefixes in grants: only a client that writes a prefix gives one, and no object has its name."""

import re
from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.db import connection

from conductor_app.access.commands.users import Subject, grant, grant_to_creator
from conductor_app.access.models import Grant, GroupProfile
from conductor_app.access.permissions import read_permission_set, role_group
from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from tests.access.test_owners import HANDLER, SCHEDULE, WEBHOOK
from tests.access.users import api_client_of, create_application
from tests.builders import simple

pytestmark = pytest.mark.usefixtures("with_logins", "clock")


@pytest.fixture
def admin():
    made = api_client_of(create_application("root", "ADMIN"))
    made.define(simple("pack"), name="ship")
    return made


@pytest.fixture
def shop():
    return create_application("shop", "USER")


def definition(name, *tasks):
    return {"name": name, "version": 1, "schemaVersion": 2, "tasks": list(tasks or [simple("pay")])}


INLINE = {
    "name": "child",
    "taskReferenceName": "child",
    "type": "SUB_WORKFLOW",
    "subWorkflowParam": {"name": "child", "workflowDefinition": definition("bank*")},
}
NEW_OBJECTS = {
    "a workflow": ("POST", "/metadata/workflow", definition("*")),
    "several workflows": ("PUT", "/metadata/workflow", [definition("bank*")]),
    "an inline definition of a step": ("POST", "/metadata/workflow", definition("outer", INLINE)),
    "an inline definition of a start": ("POST", "/workflow", {"name": "bank*", "workflowDef": definition("bank*")}),
    "a task definition": ("POST", "/metadata/taskdefs", [{"name": "*"}]),
    "a schema": ("POST", "/schema", [{"name": "a*b", "version": 1, "type": "JSON", "data": {"type": "object"}}]),
    "a form": ("POST", "/human/template", {"name": "*", "version": 1, "jsonSchema": {}, "templateUI": {}}),
    "a prompt": ("POST", "/prompts/bank*?description=x", "Say so"),
    "a secret": ("PUT", "/secrets/bank*", b"4711"),
    "a value": ("PUT", "/environment/bank*", b"4711"),
    "an integration": (
        "POST",
        "/integrations/provider/bank*",
        {"category": "AI_MODEL", "type": "openai", "enabled": True, "configuration": {"api_key": "k"}},
    ),
    "a schedule": ("POST", "/scheduler/schedules", {**SCHEDULE, "name": "*"}),
    "an event handler": ("POST", "/event", {**HANDLER, "name": "*"}),
    "a webhook": ("POST", "/metadata/webhook", {**WEBHOOK, "name": "*"}),
}


@pytest.mark.parametrize("case", NEW_OBJECTS)
def test_a_new_object_cannot_have_the_name_of_a_prefix(admin, case):
    method, path, body = NEW_OBJECTS[case]

    reply = getattr(admin, method.lower())(path, body)

    assert re.search("must not contain '\\*'|letters, digits, _ or -", reply.content.decode())
    assert reply.status_code == (200 if method == "PUT" and path == "/metadata/workflow" else 400)
    assert not WorkflowDefinition.objects.exclude(name="ship").exists()
    assert not Grant.objects.filter(target_id__contains="*").exists()


def test_an_existing_object_with_such_a_name_stays_usable(admin):
    row = WorkflowDefinition.objects.get(name="ship")
    WorkflowDefinition.objects.bulk_create(
        [WorkflowDefinition(name="old*", version=1, document={**row.document, "name": "old*"}, created_at=1)]
    )

    assert admin.put("/metadata/workflow", [{**definition("old*"), "version": 2}]).status_code == 200
    assert admin.post("/workflow/old*", {}).status_code == 200


def test_the_creator_of_an_object_gets_its_exact_name_whatever_it_is(admin, shop):
    grant_to_creator(api_actor(shop), [("WORKFLOW_DEF", "*")])

    held = read_permission_set(shop.user_id)
    assert held.allows("READ", "WORKFLOW_DEF", "*")
    assert not held.allows("READ", "WORKFLOW_DEF", "ship")
    assert not held.names["READ", "WORKFLOW_DEF"].prefixes


@pytest.mark.parametrize("name", ["HTTP", "KAFKA_PUBLISH", "HTTP@bank-slow"])
def test_the_creator_of_a_task_definition_with_the_name_of_a_built_in_type_receives_none_of_its_tasks(admin, name):
    group = Group.objects.create(name="team")
    GroupProfile.objects.create(group=group, default_access={"TASK_DEF": ["READ", "EXECUTE"]})
    author = create_application("author", "METADATA_MANAGER")
    author.user.groups.add(group)
    api = api_client_of(author)

    assert api.post("/metadata/taskdefs", [{"name": name, "retryCount": 1}, {"name": "own"}]).status_code == 200

    assert api.get(f"/tasks/poll/batch/{name}?timeout=0").status_code == 403
    assert api.get("/tasks/poll/batch/own?timeout=0").status_code == 200
    assert api.put("/metadata/taskdefs", {"name": name, "retryCount": 2}).status_code == 200


def api_actor(made):
    from conductor_app.access.authentication import actor_of_user

    return actor_of_user(made.user_id)


def test_an_object_with_the_tag_of_a_grant_is_no_prefix_either(shop):
    from conductor_app.access.models import Tag

    grant(Subject(user_id=shop.user_id), "TAG", "team:*", ["READ"], "shop", "olga")
    Tag.objects.create(object_type="WORKFLOW_DEF", object_name="*", key="team", value="*")

    assert read_permission_set(shop.user_id).names["READ", "WORKFLOW_DEF"].exact == {"*"}


def test_a_client_writes_a_prefix_with_a_star_and_revokes_it_so(admin, shop):
    subject = {"type": "USER", "id": f"app:{shop.id}"}
    body = {"subject": subject, "target": {"type": "WORKFLOW_DEF", "id": "sh*"}, "access": ["READ"]}

    assert admin.post("/auth/authorization", body).status_code == 200
    assert read_permission_set(shop.user_id).allows("READ", "WORKFLOW_DEF", "ship")
    assert admin.get("/auth/authorization/WORKFLOW_DEF/sh*").json() == {"READ": [subject]}

    assert admin.delete("/auth/authorization", body).status_code == 200
    assert not Grant.objects.exists()


def test_a_prefix_replaces_the_grant_of_an_object_that_is_called_like_it(shop):
    grant_to_creator(api_actor(shop), [("WORKFLOW_DEF", "sh*")])

    grant(Subject(user_id=shop.user_id), "WORKFLOW_DEF", "sh*", ["READ"], "shop", "olga")

    held = read_permission_set(shop.user_id)
    assert held.allows("READ", "WORKFLOW_DEF", "ship")
    assert not held.allows("EXECUTE", "WORKFLOW_DEF", "ship")


def test_an_upgrade_keeps_the_prefixes_of_administrators_and_takes_them_from_creators(shop):
    team = role_group("WORKER")
    GroupProfile.objects.filter(group=team).update(default_access={"TASK_DEF": ["READ"]})
    TaskDefinition.objects.bulk_create([TaskDefinition(name="*", document={}, created_by="shop")])
    rows = {
        "by an administrator": Grant(user_id=shop.user_id, target_id="order_*", granted_by="olga"),
        "by its creator": Grant(user_id=shop.user_id, target_id="bank*", granted_by="shop"),
        "of a tag": Grant(user_id=shop.user_id, target_type="TAG", target_id="team:*", granted_by="olga"),
        "of a name": Grant(user_id=shop.user_id, target_id="ship", granted_by="olga"),
        "to a group": Grant(group=team, target_id="pay_*", granted_by="olga"),
        "to a group by a creator": Grant(group=team, target_type="TASK_DEF", target_id="*", granted_by="shop"),
    }
    for row in rows.values():
        row.target_type, row.access, row.granted_at = row.target_type or "WORKFLOW_DEF", "READ", 1
        row.save()

    migration = import_module("conductor_app.migrations.0005_mark_prefixes")
    migration.mark_prefixes(apps, connection.schema_editor())

    marked = set(Grant.objects.filter(is_prefix=True).values_list("pk", flat=True))
    assert {name for name, row in rows.items() if row.pk in marked} == {"by an administrator", "to a group"}
