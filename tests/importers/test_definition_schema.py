"""The JSON Schema of definitions in a folder: it accepts what the server accepts, and finds wrong values."""

import json

import jsonschema_rs
import pytest
from django.core.management import call_command

from conductor_app.core.document.json_positions import KIND_NAMES
from conductor_app.tools.importers.folders import KINDS, folder_schema
from tests.builders import simple

WORKFLOW = {"name": "order", "tasks": [simple("charge"), {**simple("wait"), "type": "WAIT"}]}
TASK = {"name": "charge", "retryCount": 3, "retryLogic": "FIXED"}
LOOP = {**simple("loop"), "type": "DO_WHILE", "loopOver": [{"name": "inner"}]}


@pytest.fixture(scope="module")
def schema():
    return jsonschema_rs.validator_for(folder_schema())


def test_the_schema_has_all_kinds():
    assert KINDS.keys() == KIND_NAMES.keys()


@pytest.mark.parametrize(
    "document",
    [
        WORKFLOW,
        TASK,
        [WORKFLOW, TASK],
        {"kind": "task", **TASK},
        {"name": "nightly", "cronExpression": "0 0 4 * * *", "startWorkflowRequest": {"name": "order"}},
        {"name": "paid", "event": "conductor:paid", "actions": [{"action": "start_workflow"}]},
        {"kind": "queue-limit", "name": "charge", "concurrentExecLimit": 5},
        {"name": "Failed", "selection": {"status": ["FAILED"]}, "conditions": [{"type": "count", "threshold": 3}]},
        {"kind": "role", "name": "SHIPPING", "permissions": ["READ_WORKFLOW_DEF"]},
    ],
)
def test_valid_definitions_are_accepted(schema, document):
    assert [each.message for each in schema.iter_errors(document)] == []


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "task", "name": "charge", "retryLogic": "SOMETIMES"},
        {"kind": "workflow", "name": "order"},
        {"kind": "workflow", "name": "order", "tasks": [LOOP]},
        {"kind": "taks", "name": "charge"},
        {"kind": "alert", "name": "Failed", "selection": {}, "conditions": [{"type": "many"}]},
        {"kind": "role", "name": "SHIPPING", "permissions": "READ_WORKFLOW_DEF"},
        {"name": 7},
    ],
)
def test_wrong_values_are_found_in_nested_steps_too(schema, document):
    assert not schema.is_valid(document)


def test_the_command_prints_the_schema(capsys):
    call_command("print_definition_schema")

    assert json.loads(capsys.readouterr().out) == folder_schema()
