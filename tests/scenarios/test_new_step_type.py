"""A new container type needs one module and one registration: every layer finds its contents through `bodies`."""

import pytest

from conductor_app.core import definition as step_structure
from conductor_app.core import step_types
from conductor_app.core.definition import path_to_step, references_inside
from conductor_app.core.validation.checks import workflow_errors
from conductor_app.core.validation.findings import LintContext
from conductor_app.core.validation.lint import lint_definition
from conductor_app.definitions.diagram.layout import diagram
from tests.builders import definition, policy, simple, step
from tests.scenario import Scenario
from tests.scenarios.group_step_type import Group


@pytest.fixture(autouse=True)
def group_type(monkeypatch):
    monkeypatch.setattr(step_types, "STEP_TYPES", dict(step_types.STEP_TYPES))
    monkeypatch.setitem(step_structure.STEP_STRUCTURES, Group.type, None)
    monkeypatch.setitem(step_types.DECLARED_TYPES, Group.type, None)
    step_types.register(Group())


def group(ref, *steps):
    return {"name": ref, "taskReferenceName": ref, "type": "GROUP", "inputParameters": {}, "groupTasks": list(steps)}


ORDER = definition(
    step("pay"), group("deliver", step("pack"), step("ship", inputs={"id": "${pack.output.id}"})), step("thank")
)


def test_control_flows_through_its_body(clock):
    scenario = Scenario(clock, step("pay"), group("deliver", step("pack"), step("ship")), step("thank"))
    scenario.worker("pay").completes()
    scenario.worker("pack").completes(id=7)
    assert scenario.statuses == {
        "pay": "COMPLETED",
        "deliver": "IN_PROGRESS",
        "pack__1": "COMPLETED",
        "ship__1": "SCHEDULED",
    }

    scenario.worker("ship").completes()
    scenario.worker("thank").completes()

    assert scenario.status == "COMPLETED"
    assert scenario.task("deliver").output == {"pack": {"id": 7}, "ship": {}}


def test_a_failure_inside_is_retried_by_an_operator(clock):
    scenario = Scenario(clock, group("deliver", step("pack", policy=policy(retries=0))))
    scenario.worker("pack").fails()
    assert scenario.status == "FAILED"

    scenario.retry()
    scenario.worker("pack").completes()

    assert scenario.status == "COMPLETED"


def test_an_operator_jumps_into_it(clock):
    scenario = Scenario(clock, step("pay"), group("deliver", step("pack"), step("ship")))

    scenario.jump("ship")

    assert scenario.statuses == {
        "pay": "SKIPPED",
        "deliver": "IN_PROGRESS",
        "pack__1": "SKIPPED",
        "ship__1": "SCHEDULED",
    }


def test_a_run_moves_to_a_version_with_another_body(clock):
    scenario = Scenario(clock, group("deliver", step("pack")))

    scenario.upgrade(group("deliver", step("pack"), step("ship")))
    scenario.worker("pack").completes()

    assert scenario.is_waiting_for("ship__1")


def test_validation_reads_its_fields_and_steps():
    broken = definition(group("deliver", {"taskReferenceName": "pack", "type": "SIMPLE"}), group("empty"))

    messages = {error.path: error.message for error in workflow_errors(broken)}

    assert "name cannot be empty" in messages["tasks[0].groupTasks[0].name"]
    assert "groupTasks field is required" in messages["tasks[1]"]


def test_lint_checks_references_inside_it():
    wrong = definition(group("deliver", step("pack", inputs={"id": "${pick.output.id}"})))

    [finding] = [each for each in lint_definition(wrong, LintContext()) if "pick" in each.message]

    assert finding.path == "tasks[0].groupTasks[0].inputParameters.id"


def test_the_tree_contains_the_steps_of_the_new_type():
    assert references_inside(ORDER["tasks"][1]) == ("pack", "ship")
    assert [level.ref for level in path_to_step(ORDER["tasks"], "ship")] == ["deliver", "ship"]


def test_the_diagram_contains_its_steps():
    drawn = {node.ref for node in diagram(ORDER).nodes}

    assert {"pay", "deliver", "pack", "ship", "thank"} <= drawn


def test_registered_task_definitions_apply_to_its_steps(clock):
    scenario = Scenario(clock, group("deliver", simple("pack")), tasks=[policy("pack", retries=1)])

    scenario.worker("pack").fails()
    scenario.worker("pack").completes()

    assert scenario.status == "COMPLETED"
