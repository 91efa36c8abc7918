"""Steps that an operator skips before the run reaches them (execution §7.2)."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Conflict, NotFound
from conductor_app.runs.models import HistoryEntry
from tests.builders import (
    dynamic_fork,
    exclusive_join,
    fork,
    human,
    loop,
    noop,
    step,
    sub_workflow,
    switch,
    terminate,
    wait,
)
from tests.builders import join as join_step
from tests.scenario import Scenario


def test_control_continues_after_a_skipped_step(clock):
    scenario = Scenario(clock, step("a"), step("b"), step("c", inputs={"seen": "${b.output.x}"}))

    scenario.skip("b", {"asked": 1}, {"x": 7})
    scenario.worker("a").completes()

    assert scenario.statuses == {"a": "COMPLETED", "b": "SKIPPED", "c": "SCHEDULED"}
    assert (scenario.task("b").input, scenario.task("b").output) == ({"asked": 1}, {"x": 7})
    assert scenario.task("c").input["seen"] == 7


def test_several_consecutive_steps_are_skipped(clock):
    scenario = Scenario(clock, step("a"), step("b"), step("c"), step("d"))

    scenario.skip("c")
    scenario.skip("b")
    scenario.worker("a").completes()

    assert scenario.queue("d") == ["d, attempt 1"]


def test_a_run_ends_where_its_last_step_is_skipped(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.skip("b")

    scenario.worker("a").completes()

    assert scenario.status == "COMPLETED"


@pytest.mark.parametrize(
    "passed",
    [
        step("b"),
        wait("b", duration="1 h"),
        human("b"),
        noop("b"),
        sub_workflow("b", "nobody"),
        terminate("b", "FAILED"),
        switch("b", {"x": [step("inner")]}, [step("other")]),
        loop("b", step("inner"), times=3),
    ],
    ids=lambda document: document["type"],
)
def test_a_step_of_any_type_is_skipped_with_its_contents(clock, passed):
    scenario = Scenario(clock, step("a"), passed, step("c"))

    scenario.skip("b")
    scenario.worker("a").completes()

    assert scenario.statuses == {"b": "SKIPPED", "a": "COMPLETED", "c": "SCHEDULED"}


def test_a_fork_is_skipped_with_its_branches_and_its_join(clock):
    scenario = Scenario(clock, step("a"), *fork([step("x"), step("y")], [step("z")]), step("c"))

    scenario.skip("fork_join")
    scenario.worker("a").completes()

    assert scenario.statuses == {"a": "COMPLETED", "fork_join": "SKIPPED", "join": "SKIPPED", "c": "SCHEDULED"}


def test_a_dynamic_fork_is_skipped_with_its_join(clock):
    scenario = Scenario(clock, step("a"), *dynamic_fork(), step("c"))

    scenario.skip("fan")
    scenario.worker("a").completes()

    assert scenario.statuses == {"a": "COMPLETED", "fan": "SKIPPED", "join": "SKIPPED", "c": "SCHEDULED"}


def test_a_switch_is_skipped_with_the_join_of_its_cases(clock):
    cases = switch("way", {"x": [step("b")], "y": [step("c")]})
    scenario = Scenario(clock, step("a"), cases, exclusive_join("end", ["b", "c"]), step("d"))

    scenario.skip("way")
    scenario.worker("a").completes()

    assert scenario.queue("d") == ["d, attempt 1"]


def test_an_exclusive_join_continues_with_a_branch_whose_end_was_skipped(clock):
    cases = switch("way", {"x": [step("a"), step("b")], "y": [step("c")]})
    scenario = Scenario(clock, cases, exclusive_join("end", ["b", "c"]), step("d"), input={"way": "x"})
    scenario.skip("b", output={"n": 1})

    scenario.worker("a").completes()

    assert scenario.queue("d") == ["d, attempt 1"]
    assert scenario.task("end").output == {"n": 1}


def test_a_skipped_join_does_not_wait(clock):
    scenario = Scenario(clock, step("a"), *fork([step("x")], [step("y")]), step("c"))
    scenario.skip("join")

    scenario.worker("a").completes()

    assert {"x": "SCHEDULED", "y": "SCHEDULED", "c": "SCHEDULED"}.items() <= scenario.statuses.items()
    for task_type in ("c", "x", "y"):
        scenario.worker(task_type).completes()
    assert scenario.status == "COMPLETED"


def test_a_join_treats_a_skipped_branch_as_complete(clock):
    scenario = Scenario(clock, *fork([step("a"), step("b")], [step("c")]), step("d"))
    scenario.skip("b", output={"n": 1})

    scenario.worker("a").completes()
    scenario.worker("c").completes(n=2)

    assert scenario.statuses["join"] == "COMPLETED"
    assert scenario.task("join").output == {"b": {"n": 1}, "c": {"n": 2}}


def test_an_outer_join_treats_a_skipped_fork_as_complete(clock):
    inner = fork([step("b")], [step("c")], join="inner")
    scenario = Scenario(clock, step("a"), *fork([step("x"), *inner], [step("y")], on=["b", "y"]))
    scenario.worker("a").completes()

    scenario.skip("fork_inner")
    scenario.worker("x").completes()
    scenario.worker("y").completes()

    assert (scenario.status, scenario.statuses["b"]) == ("COMPLETED", "SKIPPED")


def test_in_a_loop_a_step_is_skipped_in_the_current_iteration(clock):
    scenario = Scenario(clock, loop("l", step("a"), step("b"), times=3))
    scenario.worker("a").completes()
    scenario.worker("b").completes()

    scenario.skip("b", output={"n": 1})
    scenario.worker("a").completes()
    scenario.worker("a").completes()

    assert {key: scenario.statuses[key] for key in ("b__1", "b__2", "b__3")} == {
        "b__1": "COMPLETED",
        "b__2": "SKIPPED",
        "b__3": "SCHEDULED",
    }
    assert scenario.task("l").output["2"]["b"] == {"n": 1}


def test_in_a_loop_a_step_is_skipped_in_the_named_iteration(clock):
    scenario = Scenario(clock, loop("l", step("a"), times=3))
    scenario.skip("a__2")

    scenario.worker("a").completes()
    assert scenario.statuses == {"l": "IN_PROGRESS", "a__1": "COMPLETED", "a__2": "SKIPPED", "a__3": "SCHEDULED"}

    with pytest.raises(Conflict, match="over"):
        scenario.skip("a__1")


def test_a_step_is_skipped_in_a_loop_that_has_not_started(clock):
    scenario = Scenario(clock, step("x"), loop("l", step("a"), step("b"), times=2))
    scenario.skip("a")

    scenario.worker("x").completes()

    assert scenario.statuses == {"x": "COMPLETED", "a__1": "SKIPPED", "l": "IN_PROGRESS", "b__1": "SCHEDULED"}


def test_a_step_of_a_dynamic_branch_is_skipped(clock):
    branch = switch("way", {"x": [step("b"), step("c")]}, inputs={"way": "x"})
    scenario = Scenario(clock, *dynamic_fork(), step("d"), input={"tasks": [branch], "inputs": {}})

    scenario.skip("c")
    scenario.worker("b").completes()

    assert scenario.statuses == {
        "fan": "COMPLETED", "way": "COMPLETED", "join": "COMPLETED", "b": "COMPLETED", "c": "SKIPPED", "d": "SCHEDULED",
    }  # fmt: skip


@pytest.mark.parametrize(("ref", "error"), [("a", Conflict), ("nobody", NotFound), ("b__1", NotFound), ("", NotFound)])
def test_a_skip_of_an_unknown_or_executed_step_is_rejected(clock, ref, error):
    scenario = Scenario(clock, step("a"), step("b"))

    with pytest.raises(error):
        scenario.skip(ref)


def test_a_second_skip_of_a_step_is_rejected(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.skip("b")

    with pytest.raises(Conflict):
        scenario.skip("b")


@pytest.mark.parametrize("act", ["pause", "terminate"])
def test_only_a_running_run_is_led_on(clock, act):
    scenario = Scenario(clock, step("a"), step("b"))
    getattr(scenario, act)()

    with pytest.raises(Conflict, match="RUNNING"):
        scenario.skip("b")
    with pytest.raises(Conflict, match="RUNNING"):
        scenario.jump("b")


def test_a_skip_is_recorded_in_the_history(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.skip("b")

    entry = AuditEntry.objects.get(object_id=scenario.id, action="skip")
    assert (entry.actor, entry.reason) == ("ann", "Skip b.")
    assert HistoryEntry.objects.filter(run_id=scenario.id).order_by("-revision").first().effects[0]["task"] == "b"


def test_a_join_without_branches_completes(clock):
    scenario = Scenario(clock, step("a"), join_step("end", ["a"]), step("b"))
    scenario.skip("end")

    scenario.worker("a").completes()

    assert scenario.queue("b") == ["b, attempt 1"]
