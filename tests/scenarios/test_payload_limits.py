"""Size limits of payloads that the engine builds, which are those of clients' payloads (execution §1.6)."""

import pytest

from conductor_app.core.errors import Conflict, Invalid
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Run
from tests.builders import definition, fork, step, sub_workflow
from tests.scenario import ACTOR, Scenario, register_definitions

MUCH = "x" * 90_000
"""An output that one task may have, but not two tasks together."""
TWICE = {"first": "${a.output.text}", "second": "${a.output.text}"}


@pytest.fixture(autouse=True)
def _limits(settings):
    settings.CONDUCTOR_TASK_PAYLOAD_MAX_BYTES = settings.CONDUCTOR_WORKFLOW_PAYLOAD_MAX_BYTES = 100_000


def test_a_join_of_too_much_fails_the_run_and_starts_its_failure_workflow(clock):
    cleanup = definition(step("sweep"), name="cleanup")
    scenario = Scenario(clock, *fork([step("a")], [step("b")]), others=[cleanup], failureWorkflow="cleanup")
    scenario.worker("a").completes(text=MUCH)

    scenario.worker("b").completes(text=MUCH)

    assert (scenario.status, scenario.statuses["join"]) == ("FAILED", "CANCELED")
    assert (scenario.statuses["b"], scenario.task("b").output) == ("COMPLETED", {"text": MUCH})
    assert scenario.reason.startswith("The output of task join would take 180")
    assert scenario.reason.endswith("bytes; 100000 are allowed.")
    assert scenario.output == {"conductor.failure_workflow": Run.objects.get(name="cleanup").id}


def test_a_step_whose_input_exceeds_the_limit_fails_the_run(clock):
    scenario = Scenario(clock, step("a"), step("b", inputs=TWICE))

    scenario.worker("a").completes(text=MUCH)

    assert (scenario.status, scenario.statuses) == ("FAILED", {"a": "COMPLETED"})
    assert scenario.reason.startswith("The input of task b would take")


def test_a_run_whose_output_exceeds_the_limit_fails_and_so_does_its_parent(clock):
    child = definition(step("a"), name="child", outputParameters=TWICE)
    scenario = Scenario(clock, sub_workflow("inner"), others=[child])
    inner = scenario.child("inner")

    scenario.worker("a").completes(text=MUCH)

    assert (inner.status, inner.output, scenario.status) == ("FAILED", {}, "FAILED")
    assert inner.reason.startswith("The workflow's output would take")
    assert inner.reason in scenario.reason


def test_the_limit_does_not_include_members_added_by_the_engine(clock):
    child = definition(step("a"), name="child")
    scenario = Scenario(clock, sub_workflow("inner"), others=[child])

    scenario.worker("a").completes(text="x" * 99_980)

    assert (scenario.status, scenario.task("inner").output["text"]) == ("COMPLETED", "x" * 99_980)


def test_a_run_whose_first_input_exceeds_the_limit_does_not_start(clock):
    both = {"first": "${workflow.input.text}", "second": "${workflow.input.text}"}
    register_definitions(definition(step("a", inputs=both)))

    with pytest.raises(Invalid, match="The input of task a would take"):
        start_run(StartRequest("order", input={"text": MUCH}), ACTOR)

    assert not Run.objects.exists()


def test_an_operator_cannot_enter_a_payload_above_the_limit(clock):
    scenario = Scenario(clock, step("a"), step("b"), step("c"))

    with pytest.raises(Conflict, match="The input of task c would take"):
        scenario.jump("c", text=MUCH * 2)

    assert (scenario.status, list(scenario.statuses)) == ("RUNNING", ["a"])
