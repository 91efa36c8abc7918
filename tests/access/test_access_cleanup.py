"""Grants and tags are removed together with their targets."""

import pytest
from django.contrib.auth.models import User

from conductor_app.access.models import Grant, Tag
from conductor_app.site.wiring import GRANTED_OBJECTS
from tests.access.users import create_application, grant_access
from tests.api_fixtures import Api
from tests.builders import simple

WEBHOOK = {"name": "x", "verifier": "HMAC_BASED", "headerKey": "X-Signature", "secretValue": "s" * 20}
START = {"action": "start_workflow", "start_workflow": {"name": "order"}}
HANDLER = {"name": "x", "event": "conductor:x", "actions": [START]}
MADE = {
    "WORKFLOW_DEF": ("POST", "/metadata/workflow", {"name": "x", "tasks": [simple("pay")], "schemaVersion": 2}),
    "TASK_DEF": ("POST", "/metadata/taskdefs", [{"name": "x"}]),
    "WORKFLOW_SCHEDULE": (
        "POST",
        "/scheduler/schedules",
        {"name": "x", "cronExpression": "0 0 * * * ?", "startWorkflowRequest": {"name": "order"}},
    ),
    "EVENT_HANDLER": ("POST", "/event", HANDLER),
    "SECRET_NAME": ("PUT", "/secrets/x", "a value"),
    "ENV_VARIABLE": ("PUT", "/environment/x", "a value"),
    "SCHEMA": ("POST", "/schema", {"name": "x", "version": 1, "type": "JSON", "data": {}}),
    "WEBHOOK": ("POST", "/metadata/webhook", WEBHOOK),
    "INTEGRATION_PROVIDER": ("POST", "/integrations/provider/x", {"type": "openai"}),
    "PROMPT": ("POST", "/prompts/x", "a text"),
    "APPLICATION": ("POST", "/applications", {"name": "x"}),
    "USER": ("PUT", "/users/x", {"name": "X"}),
    "USER_FORM_TEMPLATE": ("POST", "/human/template", {"name": "x", "version": 1, "jsonSchema": {}, "templateUI": {}}),
}
REMOVED = {
    "WORKFLOW_DEF": "/metadata/workflow/{}/1",
    "TASK_DEF": "/metadata/taskdefs/{}",
    "WORKFLOW_SCHEDULE": "/scheduler/schedules/{}",
    "EVENT_HANDLER": "/event/{}",
    "SECRET_NAME": "/secrets/{}",
    "ENV_VARIABLE": "/environment/{}",
    "SCHEMA": "/schema/{}",
    "WEBHOOK": "/metadata/webhook/{}",
    "INTEGRATION_PROVIDER": "/integrations/provider/{}",
    "PROMPT": "/prompts/{}",
    "APPLICATION": "/applications/{}",
    "USER": "/users/{}",
    "USER_FORM_TEMPLATE": "/human/template/{}",
}


@pytest.fixture
def api(clock, db) -> Api:
    return Api()


COLUMNS = {target: (model, column) for model, target, column in GRANTED_OBJECTS}


def count_grants_and_tags(target: str, name: str, tagged: str = "") -> list[int]:
    return [
        Grant.objects.filter(target_type=target, target_id=name).count(),
        Tag.objects.filter(object_type=target, object_name=tagged or name).count(),
    ]


@pytest.mark.parametrize("target", COLUMNS)
def test_a_recreated_object_starts_without_the_grants_and_tags_of_the_deleted_one(api, target):
    shop = create_application("shop")
    model, column = COLUMNS[target]
    assert api.send(*MADE[target]).status_code in (200, 204)
    others = model.objects.exclude(pk={"APPLICATION": shop.pk, "USER": shop.user_id}.get(target))
    name = others.values_list(column, flat=True).get()
    grant_access(shop, target, name, "READ", "DELETE")
    tagged = others.get().pk if target == "WEBHOOK" else name
    Tag.objects.create(object_type=target, object_name=tagged, key="team", value="shop")

    assert api.delete(REMOVED[target].format(tagged)).status_code in (200, 204)

    assert count_grants_and_tags(target, name, tagged) == [0, 0]


def test_a_definition_keeps_grants_and_tags_until_its_last_version_is_deleted(api):
    for version in (1, 2):
        api.define(simple("pay"), name="x", version=version)
    grant_access(create_application("shop"), "WORKFLOW_DEF", "x", "READ")

    api.delete("/metadata/workflow/x/2")

    assert count_grants_and_tags("WORKFLOW_DEF", "x") == [1, 0]


def test_deleting_a_user_on_the_pages_removes_its_grants(db):
    user = User.objects.create(username="x")
    grant_access(create_application("shop"), "USER", "x", "READ")

    user.delete()

    assert count_grants_and_tags("USER", "x") == [0, 0]
