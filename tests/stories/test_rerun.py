"""Ended runs go on from one of their tasks (execution §7.4, §11 rows 1-4 and 32)."""

import pytest

from conductor_app.core.errors import Conflict, Invalid, NotFound
from tests.builders import (
    dynamic_fork,
    exclusive_join,
    fork,
    human,
    inline,
    join,
    loop,
    noop,
    policy,
    set_variable,
    step,
    switch,
    terminate,
    wait,
)
from tests.engine.views import row_violations
from tests.story import Story


def done(story: Story, *task_types: str) -> Story:
    """Workers complete these, one after another."""
    for task_type in task_types:
        story.worker(task_type).completes(by=task_type)
    return story


def ids(story: Story) -> dict[str, str]:
    """The newest attempt of each task."""
    return {ref: story.task(ref).id for ref in story.statuses}


def kept(before: dict[str, str], story: Story) -> set[str]:
    """The tasks that clients still know by the same id: those that nothing has touched, and the one rerun from."""
    return {ref for ref, id in ids(story).items() if before.get(ref) == id}


def well(story: Story) -> None:
    """The rows are as they must be."""
    assert row_violations(story.id) == []


def test_a_run_without_a_task_is_rerun_from_its_start(clock):
    story = done(Story(clock, step("a"), step("b"), input={"n": 1}), "a", "b")
    before = story.row

    clock.advance(seconds=5)
    story.rerun(input={"n": 2}, correlation_id="again")

    after = story.row
    assert (after.status, story.statuses) == ("RUNNING", {"a": "SCHEDULED"})
    assert (after.input, after.correlation_id, after.output, after.ended_at) == ({"n": 2}, "again", {}, None)
    assert after.created_at == before.created_at
    done(story, "a", "b")
    assert story.status == "COMPLETED"
    well(story)


def test_omitted_fields_stay_unchanged(clock):
    story = done(Story(clock, step("a"), input={"n": 1}, start={"correlation_id": "mine"}), "a")

    story.rerun()

    assert (story.row.input, story.row.correlation_id) == ({"n": 1}, "mine")


def test_a_run_is_rerun_from_a_task_in_the_middle(clock):
    story = done(Story(clock, step("a"), step("b", inputs={"by": "${a.output.by}"}), step("c")), "a", "b", "c")
    before = ids(story)

    story.rerun("b")

    assert story.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}
    assert kept(before, story) == {"a", "b"}
    assert story.task("b").input == {"by": "a"}
    done(story, "b", "c")
    assert story.status == "COMPLETED"
    well(story)


def test_a_task_receives_the_given_input_also_in_its_retries(clock):
    story = Story(clock, step("a", inputs={"n": 1, "m": 2}, policy=policy(retries=1)))
    done(story, "a")

    story.rerun("a", task_input={"n": "${workflow.input.is_not_read}"})

    assert story.task("a").input == {"n": "${workflow.input.is_not_read}"}
    story.worker("a").fails()
    assert story.attempts("a") == ["FAILED", "SCHEDULED"]
    assert story.task("a").input == {"n": "${workflow.input.is_not_read}"}


def test_attempts_and_timeouts_are_reset(clock):
    limits = policy(retries=1, timeout_seconds=10, timeout_policy="RETRY", total_seconds=15)
    story = Story(clock, step("a", policy=limits), timeoutSeconds=30, timeoutPolicy="TIME_OUT_WF")
    story.worker("a").fails()
    story.worker("a").fails()
    story.later(3600)

    story.rerun("a")

    assert story.queue("a") == ["a, attempt 2"]
    assert story.later(9).status == "RUNNING"
    story.worker("a").fails()
    story.worker("a").completes()
    assert story.status == "COMPLETED"


def test_a_rerun_wait_keeps_its_original_timer(clock):
    story = Story(clock, wait("w", duration="10 s"), step("a"))
    story.at(2)
    story.reports("w")
    done(story, "a")

    story.at(4).rerun("w")

    assert story.at(9).statuses == {"w": "IN_PROGRESS"}
    assert story.at(10).statuses == {"w": "COMPLETED", "a": "SCHEDULED"}


def test_a_rerun_wait_whose_timer_has_expired_completes_at_once(clock):
    story = Story(clock, wait("w", duration="10 s"), step("a"))
    done(story.later(10), "a")

    story.later(60).rerun("w")

    assert story.statuses == {"w": "COMPLETED", "a": "SCHEDULED"}


def test_a_wait_with_a_changed_input_waits_its_full_duration(clock):
    story = Story(clock, wait("w", duration="10 s"), step("a"))
    done(story.later(10), "a")

    story.later(60).rerun("w", task_input={"duration": "5 s"})

    assert story.later(4).statuses == {"w": "IN_PROGRESS"}
    assert story.later(1).statuses == {"w": "COMPLETED", "a": "SCHEDULED"}


def test_a_wait_after_the_rerun_task_waits_its_full_duration(clock):
    story = Story(clock, step("a"), wait("w", duration="10 s"))
    done(story, "a")
    story.later(10).rerun("a")
    done(story, "a")

    assert story.later(9).statuses["w"] == "IN_PROGRESS"
    assert story.later(1).statuses["w"] == "COMPLETED"


def test_the_id_of_an_earlier_attempt_names_its_task(clock):
    story = Story(clock, step("a", policy=policy(retries=1)), step("b"))
    story.worker("a").fails()
    first = story.task("a").previous_id
    done(story, "a", "b")

    story.rerun_from(first)

    assert story.statuses == {"a": "SCHEDULED"}


def test_a_run_that_is_open_is_not_rerun(clock):
    story = Story(clock, step("a"))

    with pytest.raises(Conflict):
        story.rerun("a")
    story.pause()
    with pytest.raises(Conflict):
        story.rerun()


def test_a_task_of_another_run_is_no_task_of_this_one(clock):
    story = done(Story(clock, step("a")), "a")
    other = story.starts("order")

    for id in (other.task("a").id, "nobody"):
        with pytest.raises(Invalid):
            story.rerun_from(id)
    with pytest.raises(NotFound):
        Story.rerun(type(other)("nobody"))


def branches(clock, **fields) -> Story:
    story = Story(clock, *fork([step("a1"), step("a2")], [step("b1"), step("b2")]), step("z"), **fields)
    return done(story, "a1", "b1", "a2", "b2", "z")


def test_in_a_branch_only_that_branch_and_the_steps_after_the_join_are_repeated(clock):
    story = branches(clock)
    before = ids(story)

    story.rerun("a1")

    assert kept(before, story) == {"fork_join", "b1", "b2", "join", "a1"}
    assert story.statuses == {
        "fork_join": "COMPLETED", "b1": "COMPLETED", "b2": "COMPLETED", "join": "IN_PROGRESS", "a1": "SCHEDULED",
    }  # fmt: skip
    done(story, "a1", "a2", "z")
    assert story.status == "COMPLETED"
    assert story.task("join").output == {"a2": {"by": "a2"}, "b2": {"by": "b2"}}
    well(story)


def test_tasks_canceled_in_another_branch_are_repeated(clock):
    story = Story(clock, *fork([step("a")], [step("b1"), human("b2")]), step("z"))
    done(story, "b1")
    story.worker("a").fails()
    assert (story.statuses["b2"], story.statuses["join"]) == ("CANCELED", "CANCELED")

    story.rerun("a")

    assert (story.statuses["a"], story.statuses["b2"], story.statuses["join"]) == (
        "SCHEDULED", "IN_PROGRESS", "IN_PROGRESS",
    )  # fmt: skip
    done(story, "a")
    story.reports("b2")
    done(story, "z")
    assert story.status == "COMPLETED"
    well(story)


def test_a_fork_is_executed_again(clock):
    story = branches(clock)

    story.rerun("fork_join")

    assert story.statuses == {
        "fork_join": "COMPLETED", "a1": "SCHEDULED", "b1": "SCHEDULED", "join": "IN_PROGRESS",
    }  # fmt: skip
    done(story, "a1", "b1", "a2", "b2", "z")
    assert story.status == "COMPLETED"


def test_a_join_is_evaluated_again_with_the_existing_tasks(clock):
    story = branches(clock)
    before = ids(story)

    story.rerun("join")

    assert story.statuses["join"] == "COMPLETED"
    assert kept(before, story) == {"fork_join", "a1", "a2", "b1", "b2", "join"}
    assert story.is_waiting_for("z")


def test_a_join_that_waits_for_an_earlier_step_of_the_branch_is_preserved(clock):
    story = Story(clock, *fork([step("a1"), step("a2")], [step("b")], on=["a1", "b"]), step("z"))
    done(story, "a1", "b", "a2", "z")
    before = ids(story)

    story.rerun("a2")

    assert kept(before, story) == {"fork_join", "a1", "b", "join", "z", "a2"}
    done(story, "a2")
    assert story.status == "COMPLETED"


def test_a_fork_with_a_wait_and_a_switch_is_repeated(clock):
    chosen = switch("way", {"x": [step("x")]}, [step("y")])
    story = Story(clock, *fork([wait("w", duration="5 s"), step("a")], [chosen], on=["a", "way"]), input={"way": "x"})
    done(story.later(5), "x", "a")
    assert story.status == "COMPLETED"

    story.rerun("fork_join", input={"way": "other"})

    assert story.statuses == {
        "fork_join": "COMPLETED", "w": "IN_PROGRESS", "way": "COMPLETED", "join": "IN_PROGRESS", "y": "SCHEDULED",
    }  # fmt: skip
    done(story.later(5), "y", "a")
    assert story.status == "COMPLETED"
    well(story)


def test_in_a_loop_its_iteration_continues_and_later_iterations_are_repeated(clock):
    story = Story(clock, loop("l", step("a"), step("b"), times=3), step("z"))
    done(story, *["a", "b"] * 3, "z")
    before = ids(story)

    story.rerun("b__2")

    assert kept(before, story) == {"l", "a__1", "b__1", "a__2", "b__2"}
    assert story.statuses == {
        "l": "IN_PROGRESS", "a__1": "COMPLETED", "b__1": "COMPLETED", "a__2": "COMPLETED", "b__2": "SCHEDULED",
    }  # fmt: skip
    assert set(story.task("l").output) == {"1", "iteration"}
    done(story, "b", "a", "b", "z")
    assert (story.status, set(story.task("l").output)) == ("COMPLETED", {"1", "2", "3", "iteration"})
    well(story)


def test_a_loop_starts_again_with_its_first_iteration(clock):
    story = Story(clock, loop("l", step("a"), times=2), step("z"))
    done(story, "a", "a", "z")

    story.rerun("l")

    assert story.statuses == {"l": "IN_PROGRESS", "a__1": "SCHEDULED"}
    done(story, "a", "a", "z")
    assert story.status == "COMPLETED"


def test_a_loop_iterates_over_the_given_items(clock):
    story = Story(clock, loop("l", step("a", inputs={"item": "${l.output.loopItem}"}), inputs={"_items": [1]}))
    done(story, "a")

    story.rerun("l", task_input={"_items": ["x", "y"]})

    seen = [story.task("a__1").input]
    done(story, "a")
    seen.append(story.task("a__2").input)
    done(story, "a")
    assert (seen, story.status) == ([{"item": "x"}, {"item": "y"}], "COMPLETED")


def test_a_loop_over_items_continues_with_the_item_of_its_iteration(clock):
    body = step("a", inputs={"item": "${l.output.loopItem}"})
    story = Story(clock, loop("l", body, inputs={"_items": ["x", "y", "z"]}))
    done(story, "a", "a", "a")

    story.rerun("a__2")

    assert story.task("a__2").input == {"item": "y"}


def test_a_loop_with_keep_last_n_continues_in_a_stored_iteration(clock):
    story = Story(clock, loop("l", step("a"), times=4, inputs={"keepLastN": 2}), step("z"))
    done(story, *["a"] * 4, "z")
    assert set(story.statuses) == {"l", "a__3", "a__4", "z"}

    story.rerun("a__3")

    assert story.statuses == {"l": "IN_PROGRESS", "a__3": "SCHEDULED"}
    done(story, "a", "a", "z")
    assert story.status == "COMPLETED"
    well(story)


def test_nested_loops_both_continue_in_their_iterations(clock):
    story = Story(clock, loop("o", loop("i", step("a"), times=2), step("b"), times=2), step("z"))
    done(story, *["a", "a", "b"] * 2, "z")
    before = ids(story)

    story.rerun("a__1__2")

    assert kept(before, story) == {"o", "i__1", "a__1__1", "a__1__2"}
    assert story.statuses == {
        "o": "IN_PROGRESS", "i__1": "IN_PROGRESS", "a__1__1": "COMPLETED", "a__1__2": "SCHEDULED",
    }  # fmt: skip
    done(story, "a", "b", "a", "a", "b", "z")
    assert story.status == "COMPLETED"
    well(story)


def test_in_a_loop_in_a_fork_in_a_loop_the_other_branch_keeps_its_iteration(clock):
    inner = fork([loop("i", step("a"), times=2)], [step("b")])
    story = Story(clock, loop("o", *inner, step("c"), times=2), step("z"))
    done(story, *["a", "a", "b", "c"] * 2, "z")
    before = ids(story)

    story.rerun("a__1__1")

    assert kept(before, story) == {"o", "fork_join__1", "i__1", "b__1", "join__1", "a__1__1"}
    assert story.is_waiting_for("a__1__1")
    done(story, "a", "a", "c", "a", "a", "b", "c", "z")
    assert story.status == "COMPLETED"
    well(story)


def test_a_switch_is_evaluated_again(clock):
    story = Story(clock, switch("way", {"x": [step("x")]}, [step("y")]), step("z"), input={"way": "x"})
    done(story, "x", "z")

    story.rerun("way", input={"way": "other"})
    assert story.statuses == {"way": "COMPLETED", "y": "SCHEDULED"}

    done(story, "y", "z")
    story.rerun("way", task_input={"way": "x"})
    assert story.statuses == {"way": "COMPLETED", "x": "SCHEDULED"}


def test_a_switch_with_an_empty_case_continues_after_itself(clock):
    story = Story(clock, switch("way", {"x": []}, [step("y")]), step("z"), input={"way": "other"})
    done(story, "y", "z")

    story.rerun("way", input={"way": "x"})

    assert story.statuses == {"way": "COMPLETED", "z": "SCHEDULED"}


def test_in_a_case_of_a_switch_that_case_continues(clock):
    chosen = switch("way", {"x": [step("x1"), step("x2")], "y": [step("y")]})
    story = Story(clock, chosen, exclusive_join("j", ["x2", "y"]), step("z"), input={"way": "x"})
    done(story, "x1", "x2", "z")
    before = ids(story)

    story.rerun("x2")

    assert kept(before, story) == {"way", "x1", "x2"}
    done(story, "x2", "z")
    assert story.status == "COMPLETED"
    assert story.task("j").output == {"by": "x2"}


def test_variables_and_computed_values_are_evaluated_again(clock):
    story = Story(
        clock,
        set_variable("v", n="${workflow.input.n}"),
        inline("i", "$.n + 1", inputs={"n": "${workflow.variables.n}"}),
        step("a", inputs={"n": "${i.output.result}"}),
        input={"n": 1},
    )
    done(story, "a")

    story.rerun("v", input={"n": 5})
    assert (story.row.variables, story.task("a").input) == ({"n": 5}, {"n": 6})

    done(story, "a")
    story.rerun("i", task_input={"evaluatorType": "javascript", "expression": "41 + 1"})
    assert story.task("a").input == {"n": 42}


def test_a_switch_with_a_script_evaluates_it_again(clock):
    chosen = switch("way", {"big": [step("x")]}, [step("y")], evaluatorType="javascript",
                    expression="$.way > 1 ? 'big' : 'small'")  # fmt: skip
    story = Story(clock, chosen, input={"way": 1})
    done(story, "y")

    story.rerun("way", input={"way": 2})

    assert story.statuses == {"way": "COMPLETED", "x": "SCHEDULED"}


def fan(clock, *refs: str) -> Story:
    tasks = [{"name": "pay", "taskReferenceName": ref, "type": "SIMPLE"} for ref in refs]
    given = {"tasks": tasks, "inputs": {ref: {"n": ref} for ref in refs}}
    story = Story(clock, *dynamic_fork(), step("z"), tasks=[policy("pay")], input=given)
    for _ in refs:
        story.worker("pay").completes(by="pay")
    return done(story, "z")


def test_one_branch_of_a_dynamic_fork_is_repeated(clock):
    story = fan(clock, "p", "q", "r")
    before = ids(story)

    story.rerun("q")

    assert kept(before, story) == {"fan", "p", "r", "join", "q"}
    assert story.task("q").input == {"n": "q"}
    assert story.statuses["join"] == "IN_PROGRESS"
    story.worker("pay").completes(by="again")
    assert story.task("join").output["q"] == {"by": "again"}
    done(story, "z")
    assert story.status == "COMPLETED"
    well(story)


def test_a_dynamic_fork_forks_again_from_its_new_input(clock):
    story = fan(clock, "p", "q")
    tasks = [{"name": "pay", "taskReferenceName": ref, "type": "SIMPLE"} for ref in ("q", "s", "t")]

    story.rerun("fan", input={"tasks": tasks, "inputs": {}})

    assert story.statuses == {"fan": "COMPLETED", "q": "SCHEDULED", "s": "SCHEDULED", "t": "SCHEDULED",
                              "join": "IN_PROGRESS"}  # fmt: skip
    for _ in tasks:
        story.worker("pay").completes()
    done(story, "z")
    assert story.status == "COMPLETED"
    well(story)


def test_a_failed_branch_of_a_dynamic_fork_is_repeated_with_another_one(clock):
    tasks = [{"name": ref, "taskReferenceName": ref, "type": "SIMPLE"} for ref in ("p", "q", "r")]
    story = Story(clock, *dynamic_fork(), step("z"), tasks=[policy("p"), policy("q"), policy("r")],
                  input={"tasks": tasks, "inputs": {}})  # fmt: skip
    done(story, "r")
    story.worker("q").fails()

    story.rerun("q")

    assert story.statuses == {
        "fan": "COMPLETED", "r": "COMPLETED", "join": "IN_PROGRESS", "q": "SCHEDULED", "p": "SCHEDULED",
    }  # fmt: skip
    done(story, "p", "q", "z")
    assert story.status == "COMPLETED"
    well(story)


def test_steps_inside_a_dynamic_branch_are_repeated(clock):
    body = loop("l", step("a"), step("b"), times=2)
    story = Story(clock, *dynamic_fork(), step("z"), input={"tasks": [body, step("c")], "inputs": {}})
    done(story, "c", "a", "b", "a", "b", "z")
    before = ids(story)

    story.rerun("b__1")

    assert kept(before, story) == {"fan", "c", "join", "l", "a__1", "b__1"}
    done(story, "b", "a", "b", "z")
    assert story.status == "COMPLETED"
    well(story)


def test_an_optional_failure_is_preserved_if_the_run_continued_after_it(clock):
    story = Story(clock, step("a", optional=True), step("b"), step("c"))
    story.worker("a").fails()
    done(story, "b", "c")

    story.rerun("b")
    assert story.statuses == {"a": "COMPLETED_WITH_ERRORS", "b": "SCHEDULED"}

    done(story, "b", "c")
    assert story.status == "COMPLETED"


def test_an_optional_failure_is_rerun_itself(clock):
    story = Story(clock, step("a", optional=True), step("b"))
    story.worker("a").fails()
    done(story, "b")

    story.rerun("a")
    done(story, "a", "b")

    assert (story.status, story.statuses) == ("COMPLETED", {"a": "COMPLETED", "b": "COMPLETED"})


def test_a_permitted_failure_before_the_task_is_preserved(clock):
    story = Story(clock, step("a", permissive=True), step("b"))
    story.worker("a").fails()
    done(story, "b")
    assert story.status == "FAILED"

    story.rerun("b")
    done(story, "b")
    assert story.status == "FAILED"

    story.retry()
    done(story, "a")
    assert (story.status, story.attempts("b")) == ("COMPLETED", ["COMPLETED"])


def test_a_permitted_failure_that_a_join_waits_for_is_repeated(clock):
    story = Story(clock, *fork([step("a", permissive=True)], [step("b")]), step("z"))
    story.worker("a").fails()
    done(story, "b")
    assert story.statuses["join"] == "FAILED"

    story.rerun("b")
    assert story.statuses["a"] == "SCHEDULED"

    done(story, "a", "b", "z")
    assert story.status == "COMPLETED"


def test_two_joins_on_the_same_task_both_wait_again(clock):
    story = Story(clock, *fork([step("a")], [step("b")]), join("second", ["a"]), step("z"))
    done(story, "a", "b", "z")

    story.rerun("a")

    assert (story.statuses["join"], "second" in story.statuses) == ("IN_PROGRESS", False)
    done(story, "a", "z")
    assert story.status == "COMPLETED"


def test_a_terminate_step_after_the_task_is_executed_again(clock):
    story = Story(clock, step("a"), terminate("t", "FAILED", "no"), step("z"))
    done(story, "a")
    assert (story.status, story.reason) == ("FAILED", "no")

    story.rerun("a")
    assert (story.status, story.statuses) == ("RUNNING", {"a": "SCHEDULED"})

    done(story, "a")
    assert story.status == "FAILED"


def test_a_terminate_step_in_another_branch_is_executed_again(clock):
    stopper = switch("way", {"stop": [terminate("t", "TERMINATED", "no")]}, inputs={"way": "${b.output.way}"})
    story = Story(clock, *fork([step("a")], [step("b"), stopper], on=["a", "way"]), step("z"))
    story.worker("b").completes(way="stop")
    assert (story.status, story.statuses["a"]) == ("TERMINATED", "CANCELED")

    story.rerun("a")
    assert (story.statuses["a"], story.statuses["b"]) == ("SCHEDULED", "SCHEDULED")
    assert "t" not in story.statuses

    story.worker("b").completes(way="go")
    done(story, "a", "z")
    assert story.status == "COMPLETED"
    well(story)


def test_a_late_report_is_ignored_after_a_rerun(clock):
    story = Story(clock, step("a"), step("b"))
    story.worker("a").polls()
    story.terminate()
    story.rerun("a")

    assert not story.worker("a").completes(from_lease="the first one")
    story.worker("a", "another").polls()
    story.worker("a").held = story.worker("a", "another").held
    assert not story.worker("a").completes(from_lease="the first one")
    assert story.worker("a", "another").completes(from_lease="the second one")
    assert story.task("a").output == {"from_lease": "the second one"}
    done(story, "b")
    assert story.status == "COMPLETED"


def test_a_rerun_run_can_fail_and_be_rerun_again(clock):
    story = Story(clock, step("a"), step("b"))
    for _ in range(3):
        done(story, "a")
        story.worker("b").fails()
        assert story.status == "FAILED"
        story.rerun("a")
    assert story.row.failed_refs == []
    done(story, "a", "b")

    assert story.status == "COMPLETED"


def test_a_run_without_workers_is_repeated_to_its_end(clock):
    story = Story(clock, noop("n"), set_variable("v", n="${workflow.input.n}"), input={"n": 1})
    assert story.status == "COMPLETED"

    story.rerun("v", input={"n": 2})

    assert (story.status, story.row.variables) == ("COMPLETED", {"n": 2})
