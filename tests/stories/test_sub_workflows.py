"""Runs that start runs (execution §8.10)."""

import pytest

from tests.builders import definition, dynamic_fork, policy, step, sub_workflow
from tests.story import Story

CHILD = definition(step("x"), name="child", outputParameters={"total": "${x.output.total}"})


def parent(clock, *steps, child=CHILD, **fields) -> Story:
    return Story(clock, *(steps or [sub_workflow("s"), step("after")]), others=[child], **fields)


def test_a_completed_child_returns_its_output_to_its_parent(clock):
    story = parent(clock)
    assert story.statuses == {"s": "IN_PROGRESS"}

    story.worker("x").completes(total=3)

    assert story.statuses == {"s": "COMPLETED", "after": "SCHEDULED"}
    assert story.task("s").output == {"total": 3, "subWorkflowId": story.child("s").id}


@pytest.mark.parametrize(("optional", "status"), [(False, "FAILED"), (True, "RUNNING")])
def test_a_child_that_fails_fails_its_parent_unless_it_is_optional(clock, optional, status):
    story = parent(clock, sub_workflow("s", optional=optional), step("after"))

    story.worker("x").fails("no luck")

    child = story.child("s")
    assert (child.status, story.status) == ("FAILED", status)
    assert story.task("s").reason == f"Sub workflow child.1/{child.id} failure reason: {child.reason}"


def test_a_child_that_is_terminated_terminates_its_parent(clock):
    story = parent(clock)

    story.child("s").terminate("enough")

    assert (story.statuses["s"], story.status) == ("CANCELED", "TERMINATED")


def test_a_child_that_times_out_times_its_parent_out(clock):
    story = parent(clock, child={**CHILD, "timeoutSeconds": 10, "timeoutPolicy": "TIME_OUT_WF"})

    assert story.at(9).status == "RUNNING"
    assert story.at(10).status == "TIMED_OUT"
    assert story.child("s").status == "TIMED_OUT"


def test_a_parent_that_is_terminated_stops_children_and_grandchildren(clock):
    middle = definition(sub_workflow("inner"), name="middle")
    story = Story(clock, sub_workflow("s", "middle"), others=[CHILD, middle])
    below = story.child("s").child("inner")

    story.terminate("enough")

    assert [story.status, story.child("s").status, below.status] == ["TERMINATED"] * 3
    assert story.queue("x") == []
    assert "enough" in below.reason


def test_every_retry_of_the_task_is_a_new_child(clock):
    story = parent(clock, sub_workflow("s", policy=policy(retries=1, delay_seconds=5)), step("after"))
    first = story.child("s").id

    story.worker("x").fails()
    assert story.status == "RUNNING"
    story.later(5).worker("x").completes()

    assert story.attempts("s") == ["FAILED", "COMPLETED"]
    assert story.child("s").id != first


def test_a_task_that_times_out_stops_its_child(clock):
    limits = policy(timeout_seconds=10, timeout_policy="RETRY", retries=1)
    story = parent(clock, sub_workflow("s", policy=limits))
    first = story.child("s")

    story.at(10)

    assert first.status == "TERMINATED"
    assert (story.child("s").status, story.status) == ("RUNNING", "RUNNING")


def test_the_version_of_a_child_is_the_newest_when_its_parent_starts(clock):
    story = parent(clock, step("before"), sub_workflow("s"))
    Story(clock, step("y"), name="child", version=2)

    story.worker("before").completes()

    assert story.child("s").row.version == 1


def test_a_retried_parent_gets_a_new_child(clock):
    story = parent(clock)
    story.worker("x").fails()

    story.retry()
    story.worker("x").completes()
    story.worker("after").completes()

    assert story.status == "COMPLETED"
    assert story.attempts("s") == ["FAILED", "COMPLETED"]


def test_many_concurrent_children_all_complete_their_parents(clock):
    names = [f"s{number}" for number in range(60)]
    inputs = {"forkTaskInputs": names, "forkTaskWorkflow": "child"}
    story = parent(clock, *dynamic_fork(inputs=inputs, optional=False), step("after"))
    story.later(1)

    for _ in names:
        story.worker("x").completes()
    story.later(1)

    assert story.is_waiting_for("after")
