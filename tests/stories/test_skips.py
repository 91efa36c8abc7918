"""Steps that an operator passes over before control comes to them (execution §7.2)."""

import pytest

from conductor_app.core.errors import Conflict, NotFound
from conductor_app.models import AuditEntry, HistoryEntry
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
from tests.story import Story


def test_control_continues_after_a_skipped_step(clock):
    story = Story(clock, step("a"), step("b"), step("c", inputs={"seen": "${b.output.x}"}))

    story.skip("b", {"asked": 1}, {"x": 7})
    story.worker("a").completes()

    assert story.statuses == {"a": "COMPLETED", "b": "SKIPPED", "c": "SCHEDULED"}
    assert (story.task("b").input, story.task("b").output) == ({"asked": 1}, {"x": 7})
    assert story.task("c").input["seen"] == 7


def test_several_consecutive_steps_are_skipped(clock):
    story = Story(clock, step("a"), step("b"), step("c"), step("d"))

    story.skip("c")
    story.skip("b")
    story.worker("a").completes()

    assert story.queue("d") == ["d, attempt 1"]


def test_a_run_ends_where_its_last_step_is_skipped(clock):
    story = Story(clock, step("a"), step("b"))
    story.skip("b")

    story.worker("a").completes()

    assert story.status == "COMPLETED"


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
    story = Story(clock, step("a"), passed, step("c"))

    story.skip("b")
    story.worker("a").completes()

    assert story.statuses == {"b": "SKIPPED", "a": "COMPLETED", "c": "SCHEDULED"}


def test_a_fork_is_skipped_with_its_branches_and_its_join(clock):
    story = Story(clock, step("a"), *fork([step("x"), step("y")], [step("z")]), step("c"))

    story.skip("fork_join")
    story.worker("a").completes()

    assert story.statuses == {"a": "COMPLETED", "fork_join": "SKIPPED", "join": "SKIPPED", "c": "SCHEDULED"}


def test_a_dynamic_fork_is_skipped_with_its_join(clock):
    story = Story(clock, step("a"), *dynamic_fork(), step("c"))

    story.skip("fan")
    story.worker("a").completes()

    assert story.statuses == {"a": "COMPLETED", "fan": "SKIPPED", "join": "SKIPPED", "c": "SCHEDULED"}


def test_a_switch_is_skipped_with_the_join_of_its_cases(clock):
    cases = switch("way", {"x": [step("b")], "y": [step("c")]})
    story = Story(clock, step("a"), cases, exclusive_join("end", ["b", "c"]), step("d"))

    story.skip("way")
    story.worker("a").completes()

    assert story.queue("d") == ["d, attempt 1"]


def test_an_exclusive_join_continues_with_a_branch_whose_end_was_skipped(clock):
    cases = switch("way", {"x": [step("a"), step("b")], "y": [step("c")]})
    story = Story(clock, cases, exclusive_join("end", ["b", "c"]), step("d"), input={"way": "x"})
    story.skip("b", output={"n": 1})

    story.worker("a").completes()

    assert story.queue("d") == ["d, attempt 1"]
    assert story.task("end").output == {"n": 1}


def test_a_skipped_join_does_not_wait(clock):
    story = Story(clock, step("a"), *fork([step("x")], [step("y")]), step("c"))
    story.skip("join")

    story.worker("a").completes()

    assert {"x": "SCHEDULED", "y": "SCHEDULED", "c": "SCHEDULED"}.items() <= story.statuses.items()
    for task_type in ("c", "x", "y"):
        story.worker(task_type).completes()
    assert story.status == "COMPLETED"


def test_a_join_treats_a_skipped_branch_as_complete(clock):
    story = Story(clock, *fork([step("a"), step("b")], [step("c")]), step("d"))
    story.skip("b", output={"n": 1})

    story.worker("a").completes()
    story.worker("c").completes(n=2)

    assert story.statuses["join"] == "COMPLETED"
    assert story.task("join").output == {"b": {"n": 1}, "c": {"n": 2}}


def test_an_outer_join_treats_a_skipped_fork_as_complete(clock):
    inner = fork([step("b")], [step("c")], join="inner")
    story = Story(clock, step("a"), *fork([step("x"), *inner], [step("y")], on=["b", "y"]))
    story.worker("a").completes()

    story.skip("fork_inner")
    story.worker("x").completes()
    story.worker("y").completes()

    assert (story.status, story.statuses["b"]) == ("COMPLETED", "SKIPPED")


def test_in_a_loop_a_step_is_skipped_in_the_current_iteration(clock):
    story = Story(clock, loop("l", step("a"), step("b"), times=3))
    story.worker("a").completes()
    story.worker("b").completes()

    story.skip("b", output={"n": 1})
    story.worker("a").completes()
    story.worker("a").completes()

    assert {key: story.statuses[key] for key in ("b__1", "b__2", "b__3")} == {
        "b__1": "COMPLETED",
        "b__2": "SKIPPED",
        "b__3": "SCHEDULED",
    }
    assert story.task("l").output["2"]["b"] == {"n": 1}


def test_in_a_loop_a_step_is_skipped_in_the_named_iteration(clock):
    story = Story(clock, loop("l", step("a"), times=3))
    story.skip("a__2")

    story.worker("a").completes()
    assert story.statuses == {"l": "IN_PROGRESS", "a__1": "COMPLETED", "a__2": "SKIPPED", "a__3": "SCHEDULED"}

    with pytest.raises(Conflict, match="over"):
        story.skip("a__1")


def test_a_step_is_skipped_in_a_loop_that_has_not_started(clock):
    story = Story(clock, step("x"), loop("l", step("a"), step("b"), times=2))
    story.skip("a")

    story.worker("x").completes()

    assert story.statuses == {"x": "COMPLETED", "a__1": "SKIPPED", "l": "IN_PROGRESS", "b__1": "SCHEDULED"}


def test_a_step_of_a_dynamic_branch_is_skipped(clock):
    branch = switch("way", {"x": [step("b"), step("c")]}, inputs={"way": "x"})
    story = Story(clock, *dynamic_fork(), step("d"), input={"tasks": [branch], "inputs": {}})

    story.skip("c")
    story.worker("b").completes()

    assert story.statuses == {
        "fan": "COMPLETED", "way": "COMPLETED", "join": "COMPLETED", "b": "COMPLETED", "c": "SKIPPED", "d": "SCHEDULED",
    }  # fmt: skip


@pytest.mark.parametrize(("ref", "error"), [("a", Conflict), ("nobody", NotFound), ("b__1", NotFound), ("", NotFound)])
def test_a_skip_of_an_unknown_or_executed_step_is_rejected(clock, ref, error):
    story = Story(clock, step("a"), step("b"))

    with pytest.raises(error):
        story.skip(ref)


def test_a_second_skip_of_a_step_is_rejected(clock):
    story = Story(clock, step("a"), step("b"))
    story.skip("b")

    with pytest.raises(Conflict):
        story.skip("b")


@pytest.mark.parametrize("act", ["pause", "terminate"])
def test_only_a_running_run_is_led_on(clock, act):
    story = Story(clock, step("a"), step("b"))
    getattr(story, act)()

    with pytest.raises(Conflict, match="RUNNING"):
        story.skip("b")
    with pytest.raises(Conflict, match="RUNNING"):
        story.jump("b")


def test_a_skip_is_recorded_in_the_history(clock):
    story = Story(clock, step("a"), step("b"))
    story.skip("b")

    entry = AuditEntry.objects.get(object_id=story.id, action="skip")
    assert (entry.actor, entry.reason) == ("a test", "Skip b.")
    assert HistoryEntry.objects.filter(run_id=story.id).order_by("-revision").first().effects[0]["task"] == "b"


def test_a_join_without_branches_completes(clock):
    story = Story(clock, step("a"), join_step("end", ["a"]), step("b"))
    story.skip("end")

    story.worker("a").completes()

    assert story.queue("b") == ["b, attempt 1"]
