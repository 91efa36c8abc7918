"""Child runs (execution §8.10)."""

import pytest

from tests.builders import definition, dynamic_fork, policy, step, sub_workflow
from tests.scenario import Scenario

CHILD = definition(step("x"), name="child", outputParameters={"total": "${x.output.total}"})


def parent(clock, *steps, child=CHILD, **fields) -> Scenario:
    return Scenario(clock, *(steps or [sub_workflow("s"), step("after")]), others=[child], **fields)


def test_a_completed_child_returns_its_output_to_its_parent(clock):
    scenario = parent(clock)
    assert scenario.statuses == {"s": "IN_PROGRESS"}

    scenario.worker("x").completes(total=3)

    assert scenario.statuses == {"s": "COMPLETED", "after": "SCHEDULED"}
    assert scenario.task("s").output == {"total": 3, "subWorkflowId": scenario.child("s").id}


@pytest.mark.parametrize(("optional", "status"), [(False, "FAILED"), (True, "RUNNING")])
def test_a_child_that_fails_fails_its_parent_unless_it_is_optional(clock, optional, status):
    scenario = parent(clock, sub_workflow("s", optional=optional), step("after"))

    scenario.worker("x").fails("no luck")

    child = scenario.child("s")
    assert (child.status, scenario.status) == ("FAILED", status)
    assert scenario.task("s").reason == f"Sub workflow child.1/{child.id} failure reason: {child.reason}"


def test_a_child_that_is_terminated_terminates_its_parent(clock):
    scenario = parent(clock)

    scenario.child("s").terminate("enough")

    assert (scenario.statuses["s"], scenario.status) == ("CANCELED", "TERMINATED")


def test_a_child_that_times_out_times_its_parent_out(clock):
    scenario = parent(clock, child={**CHILD, "timeoutSeconds": 10, "timeoutPolicy": "TIME_OUT_WF"})

    assert scenario.at(9).status == "RUNNING"
    assert scenario.at(10).status == "TIMED_OUT"
    assert scenario.child("s").status == "TIMED_OUT"


def test_a_parent_that_is_terminated_stops_children_and_grandchildren(clock):
    middle = definition(sub_workflow("inner"), name="middle")
    scenario = Scenario(clock, sub_workflow("s", "middle"), others=[CHILD, middle])
    below = scenario.child("s").child("inner")

    scenario.terminate("enough")

    assert [scenario.status, scenario.child("s").status, below.status] == ["TERMINATED"] * 3
    assert scenario.queue("x") == []
    assert "enough" in below.reason


def test_every_retry_of_the_task_is_a_new_child(clock):
    scenario = parent(clock, sub_workflow("s", policy=policy(retries=1, delay_seconds=5)), step("after"))
    first = scenario.child("s").id

    scenario.worker("x").fails()
    assert scenario.status == "RUNNING"
    scenario.later(5).worker("x").completes()

    assert scenario.attempts("s") == ["FAILED", "COMPLETED"]
    assert scenario.child("s").id != first


def test_a_task_that_times_out_stops_its_child(clock):
    limits = policy(timeout_seconds=10, timeout_policy="RETRY", retries=1)
    scenario = parent(clock, sub_workflow("s", policy=limits))
    first = scenario.child("s")

    scenario.at(10)

    assert first.status == "TERMINATED"
    assert (scenario.child("s").status, scenario.status) == ("RUNNING", "RUNNING")


def test_the_version_of_a_child_is_the_newest_when_its_parent_starts(clock):
    scenario = parent(clock, step("before"), sub_workflow("s"))
    Scenario(clock, step("y"), name="child", version=2)

    scenario.worker("before").completes()

    assert scenario.child("s").row.version == 1


def test_a_retried_parent_gets_a_new_child(clock):
    scenario = parent(clock)
    scenario.worker("x").fails()

    scenario.retry()
    scenario.worker("x").completes()
    scenario.worker("after").completes()

    assert scenario.status == "COMPLETED"
    assert scenario.attempts("s") == ["FAILED", "COMPLETED"]


def test_many_concurrent_children_all_complete_their_parents(clock):
    names = [f"s{number}" for number in range(60)]
    inputs = {"forkTaskInputs": names, "forkTaskWorkflow": "child"}
    scenario = parent(clock, *dynamic_fork(inputs=inputs, optional=False), step("after"))
    scenario.later(1)

    for _ in names:
        scenario.worker("x").completes()
    scenario.later(1)

    assert scenario.is_waiting_for("after")
