"""A new built-in type needs two declarations: its class, and that of its worker."""

import json

import pytest

from conductor_app.core import definition as step_structure
from conductor_app.core import step_types
from conductor_app.core.validation.checks import workflow_errors
from conductor_app.system_tasks import registry
from conductor_app.system_tasks.registry import run_built_in_workers
from tests.builders import definition, step
from tests.definitions.test_canvas import post
from tests.documentation.reference import step_types as reference
from tests.scenarios import greeting

GREET = {**step("greet", inputs={"person": "Ada"}), "type": "GREET"}


@pytest.fixture(autouse=True)
def greet_type(monkeypatch):
    for table in (step_types.STEP_TYPES, step_types.DECLARED_TYPES, step_structure.STEP_STRUCTURES):
        monkeypatch.setitem(table, greeting.Greet.type, None)
    step_types.register_types(greeting)
    monkeypatch.setattr(registry._registrations, "value", registry._registrations.value)
    registry.register_workers([greeting.Greet.type], lambda: registry.workers_in([greeting]))
    yield
    registry.workers.cache_clear()


@pytest.mark.django_db
def test_a_run_that_the_api_starts_executes_it(client):
    document = definition(GREET, outputParameters={"said": "${greet.output.text}"})
    body = {"name": document["name"], "workflowDef": document}
    started = client.post("/api/workflow", json.dumps(body), content_type="application/json")

    run_built_in_workers()

    run = client.get(f"/api/workflow/{started.content.decode()}").json()
    assert (run["status"], run["output"]) == ("COMPLETED", {"said": "Hello Ada"})


@pytest.mark.django_db
def test_the_editor_offers_it_with_its_fields(admin_client):
    document = json.dumps(definition(step("a")))

    listed = post(admin_client, document, "insert", place="tasks[1]")
    added = post(admin_client, document, "add:GREET", place="tasks[1]")

    assert "Greet a person" in listed["panel"] and "Greeting" in listed["panel"]
    assert added["after"]["tasks"][1]["taskReferenceName"] == "greet"
    assert 'name="step.inputParameters.person"' in added["panel"]


def test_definitions_are_checked_for_its_inputs():
    [error] = workflow_errors(definition({**GREET, "inputParameters": {}}))

    assert "inputParameters.person" in str(error)


def test_the_reference_has_its_facts():
    assert "person" in reference.writer_of("step-GREET")("")
