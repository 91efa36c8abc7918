"""Idempotency keys of the runs that steps start."""

import pytest

from conductor_app.core.errors import Conflict
from conductor_app.engine.runs.run_commands import StartRequest, start
from conductor_app.models import Run
from tests.builders import definition, policy, start_workflow, step, sub_workflow
from tests.engine.views import row_violations
from tests.story import ACTOR, RunView, Story, register_definitions, run_commit_hooks

CHILD = definition(step("x", "pay"), name="child")


def keyed(strategy: str = "FAIL", **fields):
    named = {"name": "child", "idempotencyKey": "${workflow.input.order}", "idempotencyStrategy": strategy}
    return sub_workflow("s", **fields) | {"subWorkflowParam": named}


def told_to_start(strategy: str = "FAIL"):
    return start_workflow("s", name="child", idempotencyKey="${workflow.input.order}", idempotencyStrategy=strategy)


def parent(clock, *steps) -> Story:
    return Story(clock, *steps, others=[CHILD], input={"order": "A"})


def started_before() -> RunView:
    register_definitions(CHILD)
    with run_commit_hooks():
        return RunView(start(StartRequest("child", idempotency_key="A"), ACTOR))


@pytest.mark.parametrize("make", [keyed, told_to_start])
def test_the_started_run_owns_the_key(clock, make):
    story = parent(clock, make())

    [child] = Run.objects.filter(name="child")
    assert (child.idempotency_key, child.parent_id) == ("A", story.id if make is keyed else "")
    with pytest.raises(Conflict, match="used before"), run_commit_hooks():
        start(StartRequest("child", idempotency_key="A"), ACTOR)


@pytest.mark.parametrize("make", [keyed, told_to_start])
@pytest.mark.parametrize("strategy", ["FAIL", "FAIL_ON_RUNNING"])
def test_a_key_in_use_is_rejected(clock, make, strategy):
    started_before()

    story = parent(clock, make(strategy))

    assert (story.status, "'A' of child is already used" in story.reason) == ("FAILED", True)
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

    story = parent(clock, told_to_start("RETURN_EXISTING"))

    assert (story.status, story.task("s").output) == ("COMPLETED", {"workflowId": before.id})
    assert Run.objects.filter(name="child").count() == 1


def test_an_active_run_with_the_key_is_adopted(clock):
    before = started_before()
    story = parent(clock, keyed("RETURN_EXISTING"), step("after"))
    assert (story.task("s").child_id, story.is_waiting_for("s")) == (before.id, True)

    story.worker("pay").completes(n=1)

    assert story.task("s").output == {"n": 1, "subWorkflowId": before.id} | story.task("s").output
    assert (story.is_waiting_for("after"), row_violations(story.id)) == (True, [])


def test_the_result_of_an_ended_run_with_the_key_is_used(clock):
    started_before()
    Story.worker(parent(clock, step("z")), "pay").completes(n=1)

    story = parent(clock, keyed("RETURN_EXISTING"), step("after"))

    assert (story.is_waiting_for("after"), story.task("s").output["n"]) == (True, 1)


def test_a_run_that_another_task_waits_for_is_not_adopted(clock):
    parent(clock, keyed())

    story = parent(clock, keyed("RETURN_EXISTING"))

    assert (story.status, "another task waits" in story.reason) == ("FAILED", True)


@pytest.mark.parametrize("strategy", ["FAIL", "RETURN_EXISTING", "FAIL_ON_RUNNING"])
def test_a_further_attempt_starts_another_run_under_the_same_key(clock, strategy):
    story = parent(clock, keyed(strategy, policy=policy(retries=1)))

    story.worker("pay").fail_terminally("broken")
    story.worker("pay").completes()

    assert (story.status, story.attempts("s")) == ("COMPLETED", ["FAILED", "COMPLETED"])
    assert Run.objects.get(idempotency_key="A").status == "COMPLETED"


def test_a_rerun_starts_another_run_under_the_same_key(clock):
    story = parent(clock, keyed())
    story.worker("pay").completes(n=1)

    story.rerun("s")
    story.worker("pay").completes(n=2)

    assert (story.status, story.task("s").output["n"]) == ("COMPLETED", 2)


@pytest.mark.parametrize("strategy", ["SOMETIMES", 7])
def test_an_unknown_strategy_fails_the_task(clock, strategy):
    story = parent(clock, told_to_start(strategy))

    assert (story.status, "idempotencyStrategy must be one of" in story.reason) == ("FAILED", True)
