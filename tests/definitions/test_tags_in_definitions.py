"""Tags inside definitions, as the Go SDK sends them."""

import pytest

from tests.builders import simple

TAG = {"key": "team", "value": "a", "type": "METADATA"}
OTHER = {"key": "tier", "value": "1", "type": "METADATA"}
WORKFLOW = {"name": "order", "version": 1, "schemaVersion": 2, "tasks": [simple("pick")]}
WAYS = {
    "POST workflow": ("POST", "/metadata/workflow?overwrite=true", WORKFLOW, False, "workflow/order"),
    "PUT workflows": ("PUT", "/metadata/workflow", WORKFLOW, True, "workflow/order"),
    "POST tasks": ("POST", "/metadata/taskdefs", {"name": "pick"}, True, "task/pick"),
    "PUT task": ("PUT", "/metadata/taskdefs", {"name": "pick"}, False, "task/pick"),
}


@pytest.mark.parametrize("way", WAYS)
def test_tags_in_a_definition_become_its_tags(api, way):
    method, address, document, is_list, place = WAYS[way]

    def save(**fields):
        sent = {**document, **fields}
        return api.send(method, address, [sent] if is_list else sent).status_code

    assert save(tags=[TAG]) == 200
    assert api.get(f"/metadata/{place}/tags").json() == [TAG]
    assert save(tags=[OTHER]) == 200
    assert api.get(f"/metadata/{place}/tags").json() == [TAG, OTHER]
    assert save(tags=[OTHER], overwriteTags=True) == 200
    assert api.get(f"/metadata/{place}/tags").json() == [OTHER]
    assert save() == 200
    assert api.get(f"/metadata/{place}/tags").json() == [OTHER]
    assert save(tags="x") == 400


@pytest.mark.parametrize("way", WAYS)
def test_a_definition_is_returned_with_its_tags_if_the_client_asks_for_them(api, way):
    method, address, document, is_list, place = WAYS[way]
    sent = {**document, "tags": [TAG]}
    api.send(method, address, [sent] if is_list else sent)
    shown = f"/metadata/{place.replace('task/', 'taskdefs/')}"

    assert api.get(f"{shown}?metadata=true").json()["tags"] == [TAG]
    assert "tags" not in api.get(shown).json()


def test_a_task_definition_in_a_step_may_have_a_lease_that_is_longer_than_its_timeout(api):
    api.define(simple("pick", taskDefinition={"name": "pick", "timeoutSeconds": 120}))
    [task] = api.workflow(api.start())["tasks"]

    assert (task["status"], task["responseTimeoutSeconds"]) == ("SCHEDULED", 3600)
