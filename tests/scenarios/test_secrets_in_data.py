"""Data cannot name a secret: a definition that arrives in an input or an output has no access to secrets."""

import pytest

from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.tasks.secrets import secrets_for_worker
from tests.builders import step
from tests.scenario import Scenario

LEAK = step("leak", inputs={"x": "${workflow.secrets.PAYROLL}"})
LEAKING = {"name": "leaking", "version": 1, "schemaVersion": 2, "tasks": [LEAK]}
NESTED = {
    **LEAKING,
    "name": "nested",
    "tasks": [
        {
            **step("inner"),
            "type": "SUB_WORKFLOW",
            "subWorkflowParam": {"name": "leaking", "workflowDefinition": LEAKING},
        }
    ],
}


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_PAYROLL", "4711")


def dispatched_input() -> dict:
    """Return the input of the leaking task as its worker receives it."""
    [attempt] = claim_tasks("leak", wait_ms=0)
    return secrets_for_worker(attempt).input or attempt.input


def sub_workflow(definition) -> dict:
    return {
        **step("child"),
        "type": "SUB_WORKFLOW",
        "subWorkflowParam": {"name": "leaking", "workflowDefinition": definition},
    }


def start_workflow(request) -> dict:
    return {**step("child", inputs={"startWorkflow": request}), "type": "START_WORKFLOW"}


DYNAMIC_FORK = [
    {
        **step("fork", inputs={"tasks": "${workflow.input.tasks}", "inputs": {}}),
        "type": "FORK_JOIN_DYNAMIC",
        "dynamicForkTasksParam": "tasks",
        "dynamicForkTasksInputParamName": "inputs",
    },
    {**step("join"), "type": "JOIN"},
]

FROM_DATA = {
    "sub-workflow": ([sub_workflow("${workflow.input.definition}")], {"definition": LEAKING}),
    "nested sub-workflow": ([sub_workflow("${workflow.input.definition}")], {"definition": NESTED}),
    "definition that allows itself a secret": (
        [sub_workflow("${workflow.input.definition}")],
        {"definition": {**LEAKING, "_allowedSecrets": ["PAYROLL"]}},
    ),
    "start request": (
        [start_workflow("${workflow.input.request}")],
        {"request": {"name": "leaking", "workflowDef": LEAKING}},
    ),
    "start request with a literal definition around data": (
        [start_workflow({"name": "leaking", "workflowDef": {**LEAKING, "tasks": "${workflow.input.tasks}"}})],
        {"tasks": [LEAK]},
    ),
    "dynamic fork": (DYNAMIC_FORK, {"tasks": [LEAK]}),
    "sub-workflow in a dynamic fork": (DYNAMIC_FORK, {"tasks": [sub_workflow(LEAKING)]}),
}


@pytest.mark.parametrize("case", FROM_DATA)
def test_a_definition_from_data_uses_no_secret(clock, case):
    steps, data = FROM_DATA[case]

    Scenario(clock, *steps, input=data)

    assert dispatched_input() == {"x": "${workflow.secrets.PAYROLL}"}


AUTHORED = {
    "sub-workflow": sub_workflow(LEAKING),
    "nested sub-workflow": sub_workflow(NESTED),
    "start request": start_workflow({"name": "leaking", "workflowDef": LEAKING}),
}


@pytest.mark.parametrize("case", AUTHORED)
def test_an_inline_definition_of_the_author_uses_the_secrets_that_it_names(clock, case):
    Scenario(clock, AUTHORED[case])

    assert dispatched_input() == {"x": "4711"}


def test_replies_do_not_show_the_restriction(clock, client):
    child = Scenario(clock, *FROM_DATA["sub-workflow"][0], input=FROM_DATA["sub-workflow"][1]).child("child")

    document = client.get(f"/api/workflow/{child.id}").json()["workflowDefinition"]

    assert document["name"] == "leaking" and "_allowedSecrets" not in document
