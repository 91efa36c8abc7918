"""The options and the switch of a workflow as a tool of agents."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Invalid
from conductor_app.definitions.models import DefinitionDraft, WorkflowDefinition
from conductor_app.definitions.queries import ToolOptions, tool_options, with_tool_switch
from tests.builders import simple
from tests.page_text import page_text
from tests.scenario import define_workflow

WORKFLOWS = "/admin/conductor/workflowdefinition/"


@pytest.fixture
def order(db, clock):
    define_workflow("order", simple("charge"))
    return WorkflowDefinition.objects.get(name="order")


def test_a_tool_has_the_name_and_the_description_of_its_workflow():
    document = {"description": "Ship an order.", "metadata": {"mcp": True}}

    assert tool_options("eu/ship order", document) == ToolOptions(
        "eu_ship_order", "eu/ship order", "Ship an order.", 60
    )


def test_a_tool_can_have_a_name_a_description_and_a_wait_of_its_own():
    mcp = {"name": "ship", "title": "Ship", "description": "Ship it.", "waitSeconds": 7.9}

    assert tool_options("order", {"metadata": {"mcp": mcp}}) == ToolOptions("ship", "Ship", "Ship it.", 7)


@pytest.mark.parametrize(("given", "seconds"), [(-1, 0), (10**9, 120), ("30", 60), (True, 60), (None, 60)])
def test_a_wait_is_within_its_limits(given, seconds):
    options = tool_options("order", {"metadata": {"mcp": {"waitSeconds": given}}})

    assert options is not None
    assert options.wait_seconds == seconds


@pytest.mark.parametrize("metadata", [None, {}, [], {"mcp": False}, {"mcp": 1}, {"mcp": {"enabled": False}}])
def test_other_definitions_are_no_tools(metadata):
    assert tool_options("order", {"metadata": metadata}) is None


def test_the_switch_keeps_the_other_options():
    document = {"name": "order", "metadata": {"team": "a", "mcp": {"name": "ship"}}}

    off = with_tool_switch(document, is_on=False)
    on = with_tool_switch(off, is_on=True)

    assert off["metadata"] == {"team": "a", "mcp": {"name": "ship", "enabled": False}}
    assert on == document


def test_the_switch_refuses_metadata_that_is_no_object():
    with pytest.raises(Invalid):
        with_tool_switch({"metadata": ["a"]}, is_on=True)


def test_an_operator_offers_a_workflow_and_stops_offering_it(operator, order):
    operator.post(f"{WORKFLOWS}{order.pk}/tool/", {"on": "1"})

    shown = page_text(operator.get(f"{WORKFLOWS}{order.pk}/change/"))
    assert "Agents call this workflow as the tool order." in shown
    assert WorkflowDefinition.objects.get().document["metadata"] == {"mcp": True}
    assert AuditEntry.objects.filter(reason="Offered to agents as a tool.").exists()

    operator.post(f"{WORKFLOWS}{order.pk}/tool/", {"on": "0"})

    assert "Offer as a tool" in page_text(operator.get(f"{WORKFLOWS}{order.pk}/change/"))
    assert tool_options("order", WorkflowDefinition.objects.get().document) is None


def test_only_the_newest_version_is_switched(operator, order):
    define_workflow("order", simple("charge"), version=2)

    operator.post(f"{WORKFLOWS}{order.pk}/tool/", {"on": "1"})

    assert not WorkflowDefinition.objects.filter(document__contains='"mcp"').exists()
    assert "Tool for agents" not in page_text(operator.get(f"{WORKFLOWS}{order.pk}/change/"))


def test_a_viewer_cannot_switch_a_tool(viewer, operator, order):
    assert viewer.post(f"{WORKFLOWS}{order.pk}/tool/", {"on": "1"}).status_code == 403
    assert operator.get(f"{WORKFLOWS}{order.pk}/tool/").status_code == 405
    assert "Offer as a tool" not in page_text(viewer.get(f"{WORKFLOWS}{order.pk}/change/"))


def test_a_draft_of_an_agent_opens_in_the_editor(api, operator):
    document = {"name": "order", "version": 1, "tasks": [simple("ship")], "schemaVersion": 2}

    saved = api.put("/metadata/workflow/order/draft", {**document, "description": "Of the agent."}).json()
    DefinitionDraft.objects.update(author="assistant")
    shown = operator.get(saved["editor"].replace(saved["author"], "assistant"))

    assert "Of the agent." in shown.content.decode()
    api.define(simple("ship"))
    again = api.put("/metadata/workflow/order/draft", document).json()
    assert f"/{WorkflowDefinition.objects.get().pk}/edit/" in again["editor"]
    assert operator.get(again["editor"]).status_code == 200


def test_a_draft_is_read_and_deleted_by_its_author(api):
    document = {"name": "order", "version": 1, "tasks": []}
    api.put("/metadata/workflow/order/draft", document)

    assert api.get("/metadata/workflow/order/draft").json()["name"] == "order"
    assert api.delete("/metadata/workflow/order/draft").status_code == 200
    assert api.get("/metadata/workflow/order/draft").status_code == 404
    assert api.put("/metadata/workflow/other/draft", document).status_code == 400
