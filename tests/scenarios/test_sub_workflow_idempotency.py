"""Idempotency keys of runs that steps start."""

import pytest

from conductor_app.core.errors import Conflict
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Run
from tests.builders import definition, policy, start_workflow, step, sub_workflow
from tests.runs.report_contexts import row_violations
from tests.scenario import ACTOR, RunView, Scenario, register_definitions, run_commit_hooks

CHILD = definition(step("x", "pay"), name="child")


def keyed(strategy: str = "FAIL", **fields):
    named = {"name": "child", "idempotencyKey": "${workflow.input.order}", "idempotencyStrategy": strategy}
    return sub_workflow("s", **fields) | {"subWorkflowParam": named}


def told_to_start(strategy: str = "FAIL"):
    return start_workflow("s", name="child", idempotencyKey="${workflow.input.order}", idempotencyStrategy=strategy)


def parent(clock, *steps) -> Scenario:
    return Scenario(clock, *steps, others=[CHILD], input={"order": "A"})


def started_before() -> RunView:
    register_definitions(CHILD)
    with run_commit_hooks():
        return RunView(start_run(StartRequest("child", idempotency_key="A"), ACTOR))


@pytest.mark.parametrize("make", [keyed, told_to_start])
def test_the_started_run_owns_the_key(clock, make):
    scenario = parent(clock, make())

    [child] = Run.objects.filter(name="child")
    assert (child.idempotency_key, child.parent_id) == ("A", scenario.id if make is keyed else "")
    with pytest.raises(Conflict, match="used before"), run_commit_hooks():
        start_run(StartRequest("child", idempotency_key="A"), ACTOR)


@pytest.mark.parametrize("make", [keyed, told_to_start])
@pytest.mark.parametrize(("order", "key"), [(True, "true"), ({"a": None}, '{"a":null}'), (7, "7")])
def test_a_value_as_a_key_is_json(clock, make, order, key):
    Scenario(clock, make(), others=[CHILD], input={"order": order})

    assert Run.objects.get(name="child").idempotency_key == key


@pytest.mark.parametrize("make", [keyed, told_to_start])
@pytest.mark.parametrize("strategy", ["FAIL", "FAIL_ON_RUNNING"])
def test_a_key_in_use_is_rejected(clock, make, strategy):
    started_before()

    scenario = parent(clock, make(strategy))

    assert (scenario.status, "'A' of child is already used" in scenario.reason) == ("FAILED", True)
    assert Run.objects.filter(name="child").count() == 1


@pytest.mark.parametrize("make", [keyed, told_to_start])
def test_the_key_of_an_ended_run_can_be_reused(clock, make):
    before = started_before()
    before.terminate()

    parent(clock, make("FAIL_ON_RUNNING"))

    assert Run.objects.filter(name="child", idempotency_key="A").count() == 1
    assert Run.objects.get(pk=before.id).idempotency_key is None


def test_a_run_that_is_not_waited_for_is_named_if_it_is_there_already(clock):
    before = started_before()

    scenario = parent(clock, told_to_start("RETURN_EXISTING"))

    assert (scenario.status, scenario.task("s").output) == ("COMPLETED", {"workflowId": before.id})
    assert Run.objects.filter(name="child").count() == 1


def test_an_active_run_with_the_key_is_adopted(clock):
    before = started_before()
    scenario = parent(clock, keyed("RETURN_EXISTING"), step("after"))
    assert (scenario.task("s").child_id, scenario.is_waiting_for("s")) == (before.id, True)

    scenario.worker("pay").completes(n=1)

    assert scenario.task("s").output == {"n": 1, "subWorkflowId": before.id} | scenario.task("s").output
    assert (scenario.is_waiting_for("after"), row_violations(scenario.id)) == (True, [])


def test_the_result_of_an_ended_run_with_the_key_is_used(clock):
    started_before()
    Scenario.worker(parent(clock, step("z")), "pay").completes(n=1)

    scenario = parent(clock, keyed("RETURN_EXISTING"), step("after"))

    assert (scenario.is_waiting_for("after"), scenario.task("s").output["n"]) == (True, 1)


def test_a_run_that_another_task_waits_for_is_not_adopted(clock):
    parent(clock, keyed())

    scenario = parent(clock, keyed("RETURN_EXISTING"))

    assert (scenario.status, "another task waits" in scenario.reason) == ("FAILED", True)


@pytest.mark.parametrize("strategy", ["FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING"])
def test_a_further_attempt_starts_another_run_under_the_same_key(clock, strategy):
    scenario = parent(clock, keyed(strategy, policy=policy(retries=1)))

    scenario.worker("pay").fail_terminally("broken")
    scenario.worker("pay").completes()

    assert (scenario.status, scenario.attempts("s")) == ("COMPLETED", ["FAILED", "COMPLETED"])
    assert Run.objects.get(idempotency_key="A").status == "COMPLETED"


def test_a_rerun_starts_another_run_under_the_same_key(clock):
    scenario = parent(clock, keyed())
    scenario.worker("pay").completes(n=1)

    scenario.rerun("s")
    scenario.worker("pay").completes(n=2)

    assert (scenario.status, scenario.task("s").output["n"]) == ("COMPLETED", 2)


@pytest.mark.parametrize("strategy", ["SOMETIMES", 7])
def test_an_unknown_strategy_fails_the_task(clock, strategy):
    scenario = parent(clock, told_to_start(strategy))

    assert (scenario.status, "idempotencyStrategy must be one of" in scenario.reason) == ("FAILED", True)
