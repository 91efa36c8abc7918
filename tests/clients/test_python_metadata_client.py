"""The Python SDK's metadata client: definitions of workflows and tasks."""

import pytest
from conductor.client.http.api_client import ApiClient
from conductor.client.http.models.task_def import TaskDef
from conductor.client.http.rest import ApiException

from examples.demo.workflows import order_fulfilment
from tests.clients.shop_workflow import Shop


def names_and_versions(shop: Shop) -> list[tuple[str, int]]:
    return [(known.name, known.version) for known in shop.metadata.get_all_workflow_defs()]


def test_a_workflow_definition_is_registered_updated_and_removed(shop: Shop):
    first, second = shop.written("cut").to_workflow_def(), shop.written("cut", "sew").to_workflow_def()
    second.version = 2

    shop.metadata.register_workflow_def(first, overwrite=False)
    shop.metadata.update_workflow_def(second)
    assert names_and_versions(shop) == [("order", 1), ("order", 2)]
    shop.metadata.unregister_workflow_def("order", 1)

    assert names_and_versions(shop) == [("order", 2)]


def test_the_newest_version_is_found_without_naming_it(shop: Shop):
    for version in (2, 10, 9):
        definition = shop.written("cut").to_workflow_def()
        definition.version = version
        shop.metadata.update_workflow_def(definition)

    assert shop.metadata.get_workflow_def("order").version == 10
    assert shop.metadata.get_workflow_def("order", version=9).version == 9


def test_an_existing_version_is_replaced_only_on_request(shop: Shop):
    shop.define("cut")
    changed = shop.written("sew").to_workflow_def()

    with pytest.raises(ApiException) as refused:
        shop.metadata.register_workflow_def(changed, overwrite=False)
    assert refused.value.status == 409
    shop.metadata.register_workflow_def(changed, overwrite=True)

    assert shop.metadata.get_workflow_def("order", 1).tasks[0].name == "sew"


def test_a_definition_of_many_kinds_of_steps_is_returned_as_it_was_sent(shop: Shop, executor, configuration):
    def as_sent(definition) -> dict:
        return ApiClient(configuration).sanitize_for_serialization(definition)

    workflow = order_fulfilment(executor)
    workflow.register(overwrite=True)

    sent, kept = as_sent(workflow.to_workflow_def()), as_sent(shop.metadata.get_workflow_def("order_fulfilment"))
    assert without_defaults(kept)["tasks"] == without_defaults(sent)["tasks"]
    assert {key: kept[key] for key in sent if key not in ("tasks", "workflowStatusListenerEnabled")} == {
        key: sent[key] for key in sent if key not in ("tasks", "workflowStatusListenerEnabled")
    }


def without_defaults(document):
    """Return the document without the server's defaults: empty lists and maps, and disabled options."""
    if isinstance(document, list):
        return [without_defaults(each) for each in document]
    if not isinstance(document, dict):
        return document
    found = {key: without_defaults(value) for key, value in document.items()}
    return {key: value for key, value in found.items() if value not in ({}, [], False, 0, None, "")}


def test_a_definition_with_faults_is_refused_and_every_fault_is_named(shop: Shop):
    definition = shop.written("cut", "cut").to_workflow_def()
    definition.tasks[0].name = ""

    with pytest.raises(ApiException) as refused:
        shop.metadata.update_workflow_def(definition)

    assert refused.value.status == 400
    assert refused.value.message == "Validation failed, check below errors for detail."
    assert "cut_ref should be unique" in refused.value.body
    assert "WorkflowTask name cannot be empty or null" in refused.value.body


def test_a_task_definition_is_registered_updated_and_removed(shop: Shop):
    shop.metadata.register_task_def(TaskDef(name="cut", retry_count=2, response_timeout_seconds=30))
    shop.metadata.update_task_def(TaskDef(name="cut", retry_count=5, response_timeout_seconds=30))
    assert shop.metadata.get_task_def("cut").retry_count == 5
    assert [known.name for known in shop.metadata.get_all_task_defs()] == ["cut"]

    shop.metadata.unregister_task_def("cut")

    assert shop.metadata.get_all_task_defs() == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get_workflow_def("nothing"),
        lambda client: client.unregister_workflow_def("nothing", 1),
        lambda client: client.get_task_def("nothing"),
        lambda client: client.unregister_task_def("nothing"),
    ],
    ids=["get workflow", "remove workflow", "get task", "remove task"],
)
def test_an_unknown_definition_is_not_found(shop: Shop, ask):
    with pytest.raises(ApiException) as missing:
        ask(shop.metadata)

    assert missing.value.status == 404
    assert "nothing" in missing.value.message
