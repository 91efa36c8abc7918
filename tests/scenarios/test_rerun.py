"""Reruns: an ended run continues from one of its tasks (execution §7.4, §11 rows 1-4 and 32)."""

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
from tests.runs.report_contexts import row_violations
from tests.scenario import Scenario


def ids(scenario: Scenario) -> dict[str, str]:
    """Return the id of each task's newest attempt."""
    return {ref: scenario.task(ref).id for ref in scenario.statuses}


def unchanged_tasks(before: dict[str, str], scenario: Scenario) -> set[str]:
    """Return the tasks whose ids are unchanged: the untouched tasks and the one that the rerun starts from."""
    return {ref for ref, id in ids(scenario).items() if before.get(ref) == id}


def assert_consistent(scenario: Scenario) -> None:
    """Assert that the rows are consistent."""
    assert row_violations(scenario.id) == []


def test_a_run_without_a_task_is_rerun_from_its_start(clock):
    scenario = Scenario(clock, step("a"), step("b"), input={"n": 1}).complete("a", "b")
    before = scenario.row

    clock.advance(seconds=5)
    scenario.rerun(input={"n": 2}, correlation_id="again")

    after = scenario.row
    assert (after.status, scenario.statuses) == ("RUNNING", {"a": "SCHEDULED"})
    assert (after.input, after.correlation_id, after.output, after.ended_at) == ({"n": 2}, "again", {}, None)
    assert after.created_at == before.created_at
    scenario.complete("a", "b")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_omitted_fields_stay_unchanged(clock):
    scenario = Scenario(clock, step("a"), input={"n": 1}, start={"correlation_id": "mine"}).complete("a")

    scenario.rerun()

    assert (scenario.row.input, scenario.row.correlation_id) == ({"n": 1}, "mine")


def test_a_run_is_rerun_from_a_task_in_the_middle(clock):
    scenario = Scenario(clock, step("a"), step("b", inputs={"by": "${a.output.by}"}), step("c")).complete("a", "b", "c")
    before = ids(scenario)

    scenario.rerun("b")

    assert scenario.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}
    assert unchanged_tasks(before, scenario) == {"a", "b"}
    assert scenario.task("b").input == {"by": "a"}
    scenario.complete("b", "c")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_a_task_receives_the_given_input_also_in_its_retries(clock):
    scenario = Scenario(clock, step("a", inputs={"n": 1, "m": 2}, policy=policy(retries=1)))
    scenario.complete("a")

    scenario.rerun("a", task_input={"n": "${workflow.input.is_not_read}"})

    assert scenario.task("a").input == {"n": "${workflow.input.is_not_read}"}
    scenario.worker("a").fails()
    assert scenario.attempts("a") == ["FAILED", "SCHEDULED"]
    assert scenario.task("a").input == {"n": "${workflow.input.is_not_read}"}


def test_attempts_and_timeouts_are_reset(clock):
    limits = policy(retries=1, timeout_seconds=10, timeout_policy="RETRY", total_seconds=15)
    scenario = Scenario(clock, step("a", policy=limits), timeoutSeconds=30, timeoutPolicy="TIME_OUT_WF")
    scenario.worker("a").fails()
    scenario.worker("a").fails()
    scenario.later(3600)

    scenario.rerun("a")

    assert scenario.queue("a") == ["a, attempt 2"]
    assert scenario.later(9).status == "RUNNING"
    scenario.worker("a").fails()
    scenario.worker("a").completes()
    assert scenario.status == "COMPLETED"


def test_a_rerun_wait_waits_its_full_duration(clock):
    scenario = Scenario(clock, wait("w", duration="10 s"), step("a"))
    scenario.at(2)
    scenario.reports("w")
    scenario.complete("a")

    scenario.at(4).rerun("w")

    assert scenario.at(13).statuses == {"w": "IN_PROGRESS"}
    assert scenario.at(14).statuses == {"w": "COMPLETED", "a": "SCHEDULED"}


def test_a_rerun_wait_until_a_time_that_has_passed_completes_at_once(clock):
    scenario = Scenario(clock, wait("w", until="2000-01-01 00:00"), step("a"))
    scenario.complete("a")

    scenario.later(60).rerun("w")

    assert scenario.statuses == {"w": "COMPLETED", "a": "SCHEDULED"}


def test_a_wait_with_a_changed_input_waits_its_full_duration(clock):
    scenario = Scenario(clock, wait("w", duration="10 s"), step("a"))
    scenario.later(10).complete("a")

    scenario.later(60).rerun("w", task_input={"duration": "5 s"})

    assert scenario.later(4).statuses == {"w": "IN_PROGRESS"}
    assert scenario.later(1).statuses == {"w": "COMPLETED", "a": "SCHEDULED"}


def test_a_wait_after_the_rerun_task_waits_its_full_duration(clock):
    scenario = Scenario(clock, step("a"), wait("w", duration="10 s"))
    scenario.complete("a")
    scenario.later(10).rerun("a")
    scenario.complete("a")

    assert scenario.later(9).statuses["w"] == "IN_PROGRESS"
    assert scenario.later(1).statuses["w"] == "COMPLETED"


def test_the_id_of_an_earlier_attempt_names_its_task(clock):
    scenario = Scenario(clock, step("a", policy=policy(retries=1)), step("b"))
    scenario.worker("a").fails()
    first = scenario.task("a").previous_id
    scenario.complete("a", "b")

    scenario.rerun_from(first)

    assert scenario.statuses == {"a": "SCHEDULED"}


def test_a_run_that_is_open_is_not_rerun(clock):
    scenario = Scenario(clock, step("a"))

    with pytest.raises(Conflict):
        scenario.rerun("a")
    scenario.pause()
    with pytest.raises(Conflict):
        scenario.rerun()


def test_a_task_of_another_run_is_no_task_of_this_one(clock):
    scenario = Scenario(clock, step("a")).complete("a")
    other = scenario.starts("order")

    for id in (other.task("a").id, "nobody"):
        with pytest.raises(Invalid):
            scenario.rerun_from(id)
    with pytest.raises(NotFound):
        Scenario.rerun(type(other)("nobody"))


def branches(clock, **fields) -> Scenario:
    scenario = Scenario(clock, *fork([step("a1"), step("a2")], [step("b1"), step("b2")]), step("z"), **fields)
    return scenario.complete("a1", "b1", "a2", "b2", "z")


def test_in_a_branch_only_that_branch_and_the_steps_after_the_join_are_repeated(clock):
    scenario = branches(clock)
    before = ids(scenario)

    scenario.rerun("a1")

    assert unchanged_tasks(before, scenario) == {"fork_join", "b1", "b2", "join", "a1"}
    assert scenario.statuses == {
        "fork_join": "COMPLETED", "b1": "COMPLETED", "b2": "COMPLETED", "join": "IN_PROGRESS", "a1": "SCHEDULED",
    }  # fmt: skip
    scenario.complete("a1", "a2", "z")
    assert scenario.status == "COMPLETED"
    assert scenario.task("join").output == {"a2": {"by": "a2"}, "b2": {"by": "b2"}}
    assert_consistent(scenario)


def test_tasks_canceled_in_another_branch_are_repeated(clock):
    scenario = Scenario(clock, *fork([step("a")], [step("b1"), human("b2")]), step("z"))
    scenario.complete("b1")
    scenario.worker("a").fails()
    assert (scenario.statuses["b2"], scenario.statuses["join"]) == ("CANCELED", "CANCELED")

    scenario.rerun("a")

    assert (scenario.statuses["a"], scenario.statuses["b2"], scenario.statuses["join"]) == (
        "SCHEDULED", "IN_PROGRESS", "IN_PROGRESS",
    )  # fmt: skip
    scenario.complete("a")
    scenario.reports("b2")
    scenario.complete("z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_a_fork_is_executed_again(clock):
    scenario = branches(clock)

    scenario.rerun("fork_join")

    assert scenario.statuses == {
        "fork_join": "COMPLETED", "a1": "SCHEDULED", "b1": "SCHEDULED", "join": "IN_PROGRESS",
    }  # fmt: skip
    scenario.complete("a1", "b1", "a2", "b2", "z")
    assert scenario.status == "COMPLETED"


def test_a_join_is_evaluated_again_with_the_existing_tasks(clock):
    scenario = branches(clock)
    before = ids(scenario)

    scenario.rerun("join")

    assert scenario.statuses["join"] == "COMPLETED"
    assert unchanged_tasks(before, scenario) == {"fork_join", "a1", "a2", "b1", "b2", "join"}
    assert scenario.is_waiting_for("z")


def test_a_join_that_waits_for_an_earlier_step_of_the_branch_is_preserved(clock):
    scenario = Scenario(clock, *fork([step("a1"), step("a2")], [step("b")], on=["a1", "b"]), step("z"))
    scenario.complete("a1", "b", "a2", "z")
    before = ids(scenario)

    scenario.rerun("a2")

    assert unchanged_tasks(before, scenario) == {"fork_join", "a1", "b", "join", "z", "a2"}
    scenario.complete("a2")
    assert scenario.status == "COMPLETED"


def test_a_fork_with_a_wait_and_a_switch_is_repeated(clock):
    chosen = switch("way", {"x": [step("x")]}, [step("y")])
    scenario = Scenario(
        clock, *fork([wait("w", duration="5 s"), step("a")], [chosen], on=["a", "way"]), input={"way": "x"}
    )
    scenario.later(5).complete("x", "a")
    assert scenario.status == "COMPLETED"

    scenario.rerun("fork_join", input={"way": "other"})

    assert scenario.statuses == {
        "fork_join": "COMPLETED", "w": "IN_PROGRESS", "way": "COMPLETED", "join": "IN_PROGRESS", "y": "SCHEDULED",
    }  # fmt: skip
    scenario.later(5).complete("y", "a")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_in_a_loop_its_iteration_continues_and_later_iterations_are_repeated(clock):
    scenario = Scenario(clock, loop("l", step("a"), step("b"), times=3), step("z"))
    scenario.complete(*["a", "b"] * 3, "z")
    before = ids(scenario)

    scenario.rerun("b__2")

    assert unchanged_tasks(before, scenario) == {"l", "a__1", "b__1", "a__2", "b__2"}
    assert scenario.statuses == {
        "l": "IN_PROGRESS", "a__1": "COMPLETED", "b__1": "COMPLETED", "a__2": "COMPLETED", "b__2": "SCHEDULED",
    }  # fmt: skip
    assert set(scenario.task("l").output) == {"1", "iteration"}
    scenario.complete("b", "a", "b", "z")
    assert (scenario.status, set(scenario.task("l").output)) == ("COMPLETED", {"1", "2", "3", "iteration"})
    assert_consistent(scenario)


def test_a_loop_starts_again_with_its_first_iteration(clock):
    scenario = Scenario(clock, loop("l", step("a"), times=2), step("z"))
    scenario.complete("a", "a", "z")

    scenario.rerun("l")

    assert scenario.statuses == {"l": "IN_PROGRESS", "a__1": "SCHEDULED"}
    scenario.complete("a", "a", "z")
    assert scenario.status == "COMPLETED"


def test_a_loop_iterates_over_the_given_items(clock):
    scenario = Scenario(clock, loop("l", step("a", inputs={"item": "${l.output.loopItem}"}), inputs={"_items": [1]}))
    scenario.complete("a")

    scenario.rerun("l", task_input={"_items": ["x", "y"]})

    seen = [scenario.task("a__1").input]
    scenario.complete("a")
    seen.append(scenario.task("a__2").input)
    scenario.complete("a")
    assert (seen, scenario.status) == ([{"item": "x"}, {"item": "y"}], "COMPLETED")


def test_a_loop_over_items_continues_with_the_item_of_its_iteration(clock):
    body = step("a", inputs={"item": "${l.output.loopItem}"})
    scenario = Scenario(clock, loop("l", body, inputs={"_items": ["x", "y", "z"]}))
    scenario.complete("a", "a", "a")

    scenario.rerun("a__2")

    assert scenario.task("a__2").input == {"item": "y"}


def test_a_loop_with_keep_last_n_continues_in_a_stored_iteration(clock):
    scenario = Scenario(clock, loop("l", step("a"), times=4, inputs={"keepLastN": 2}), step("z"))
    scenario.complete(*["a"] * 4, "z")
    assert set(scenario.statuses) == {"l", "a__3", "a__4", "z"}

    scenario.rerun("a__3")

    assert scenario.statuses == {"l": "IN_PROGRESS", "a__3": "SCHEDULED"}
    scenario.complete("a", "a", "z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_nested_loops_both_continue_in_their_iterations(clock):
    scenario = Scenario(clock, loop("o", loop("i", step("a"), times=2), step("b"), times=2), step("z"))
    scenario.complete(*["a", "a", "b"] * 2, "z")
    before = ids(scenario)

    scenario.rerun("a__1__2")

    assert unchanged_tasks(before, scenario) == {"o", "i__1", "a__1__1", "a__1__2"}
    assert scenario.statuses == {
        "o": "IN_PROGRESS", "i__1": "IN_PROGRESS", "a__1__1": "COMPLETED", "a__1__2": "SCHEDULED",
    }  # fmt: skip
    scenario.complete("a", "b", "a", "a", "b", "z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_in_a_loop_in_a_fork_in_a_loop_the_other_branch_keeps_its_iteration(clock):
    inner = fork([loop("i", step("a"), times=2)], [step("b")])
    scenario = Scenario(clock, loop("o", *inner, step("c"), times=2), step("z"))
    scenario.complete(*["a", "a", "b", "c"] * 2, "z")
    before = ids(scenario)

    scenario.rerun("a__1__1")

    assert unchanged_tasks(before, scenario) == {"o", "fork_join__1", "i__1", "b__1", "join__1", "a__1__1"}
    assert scenario.is_waiting_for("a__1__1")
    scenario.complete("a", "a", "c", "a", "a", "b", "c", "z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_a_switch_is_evaluated_again(clock):
    scenario = Scenario(clock, switch("way", {"x": [step("x")]}, [step("y")]), step("z"), input={"way": "x"})
    scenario.complete("x", "z")

    scenario.rerun("way", input={"way": "other"})
    assert scenario.statuses == {"way": "COMPLETED", "y": "SCHEDULED"}

    scenario.complete("y", "z")
    scenario.rerun("way", task_input={"way": "x"})
    assert scenario.statuses == {"way": "COMPLETED", "x": "SCHEDULED"}


def test_a_switch_with_an_empty_case_continues_after_itself(clock):
    scenario = Scenario(clock, switch("way", {"x": []}, [step("y")]), step("z"), input={"way": "other"})
    scenario.complete("y", "z")

    scenario.rerun("way", input={"way": "x"})

    assert scenario.statuses == {"way": "COMPLETED", "z": "SCHEDULED"}


def test_in_a_case_of_a_switch_that_case_continues(clock):
    chosen = switch("way", {"x": [step("x1"), step("x2")], "y": [step("y")]})
    scenario = Scenario(clock, chosen, exclusive_join("j", ["x2", "y"]), step("z"), input={"way": "x"})
    scenario.complete("x1", "x2", "z")
    before = ids(scenario)

    scenario.rerun("x2")

    assert unchanged_tasks(before, scenario) == {"way", "x1", "x2"}
    scenario.complete("x2", "z")
    assert scenario.status == "COMPLETED"
    assert scenario.task("j").output == {"by": "x2"}


def test_variables_and_computed_values_are_evaluated_again(clock):
    scenario = Scenario(
        clock,
        set_variable("v", n="${workflow.input.n}"),
        inline("i", "$.n + 1", inputs={"n": "${workflow.variables.n}"}),
        step("a", inputs={"n": "${i.output.result}"}),
        input={"n": 1},
    )
    scenario.complete("a")

    scenario.rerun("v", input={"n": 5})
    assert (scenario.row.variables, scenario.task("a").input) == ({"n": 5}, {"n": 6})

    scenario.complete("a")
    scenario.rerun("i", task_input={"evaluatorType": "javascript", "expression": "41 + 1"})
    assert scenario.task("a").input == {"n": 42}


def test_a_switch_with_a_script_evaluates_it_again(clock):
    chosen = switch("way", {"big": [step("x")]}, [step("y")], evaluatorType="javascript",
                    expression="$.way > 1 ? 'big' : 'small'")  # fmt: skip
    scenario = Scenario(clock, chosen, input={"way": 1})
    scenario.complete("y")

    scenario.rerun("way", input={"way": 2})

    assert scenario.statuses == {"way": "COMPLETED", "x": "SCHEDULED"}


def fan(clock, *refs: str) -> Scenario:
    tasks = [{"name": "pay", "taskReferenceName": ref, "type": "SIMPLE"} for ref in refs]
    given = {"tasks": tasks, "inputs": {ref: {"n": ref} for ref in refs}}
    scenario = Scenario(clock, *dynamic_fork(), step("z"), tasks=[policy("pay")], input=given)
    for _ in refs:
        scenario.worker("pay").completes(by="pay")
    return scenario.complete("z")


def test_one_branch_of_a_dynamic_fork_is_repeated(clock):
    scenario = fan(clock, "p", "q", "r")
    before = ids(scenario)

    scenario.rerun("q")

    assert unchanged_tasks(before, scenario) == {"fan", "p", "r", "join", "q"}
    assert scenario.task("q").input == {"n": "q"}
    assert scenario.statuses["join"] == "IN_PROGRESS"
    scenario.worker("pay").completes(by="again")
    assert scenario.task("join").output["q"] == {"by": "again"}
    scenario.complete("z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_a_dynamic_fork_forks_again_from_its_new_input(clock):
    scenario = fan(clock, "p", "q")
    tasks = [{"name": "pay", "taskReferenceName": ref, "type": "SIMPLE"} for ref in ("q", "s", "t")]

    scenario.rerun("fan", input={"tasks": tasks, "inputs": {}})

    assert scenario.statuses == {"fan": "COMPLETED", "q": "SCHEDULED", "s": "SCHEDULED", "t": "SCHEDULED",
                              "join": "IN_PROGRESS"}  # fmt: skip
    for _ in tasks:
        scenario.worker("pay").completes()
    scenario.complete("z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_a_failed_branch_of_a_dynamic_fork_is_repeated_with_another_one(clock):
    tasks = [{"name": ref, "taskReferenceName": ref, "type": "SIMPLE"} for ref in ("p", "q", "r")]
    scenario = Scenario(clock, *dynamic_fork(), step("z"), tasks=[policy("p"), policy("q"), policy("r")],
                  input={"tasks": tasks, "inputs": {}})  # fmt: skip
    scenario.complete("r")
    scenario.worker("q").fails()

    scenario.rerun("q")

    assert scenario.statuses == {
        "fan": "COMPLETED", "r": "COMPLETED", "join": "IN_PROGRESS", "q": "SCHEDULED", "p": "SCHEDULED",
    }  # fmt: skip
    scenario.complete("p", "q", "z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_steps_inside_a_dynamic_branch_are_repeated(clock):
    body = loop("l", step("a"), step("b"), times=2)
    scenario = Scenario(clock, *dynamic_fork(), step("z"), input={"tasks": [body, step("c")], "inputs": {}})
    scenario.complete("c", "a", "b", "a", "b", "z")
    before = ids(scenario)

    scenario.rerun("b__1")

    assert unchanged_tasks(before, scenario) == {"fan", "c", "join", "l", "a__1", "b__1"}
    scenario.complete("b", "a", "b", "z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_an_optional_failure_is_preserved_if_the_run_continued_after_it(clock):
    scenario = Scenario(clock, step("a", optional=True), step("b"), step("c"))
    scenario.worker("a").fails()
    scenario.complete("b", "c")

    scenario.rerun("b")
    assert scenario.statuses == {"a": "COMPLETED_WITH_ERRORS", "b": "SCHEDULED"}

    scenario.complete("b", "c")
    assert scenario.status == "COMPLETED"


def test_an_optional_failure_is_rerun_itself(clock):
    scenario = Scenario(clock, step("a", optional=True), step("b"))
    scenario.worker("a").fails()
    scenario.complete("b")

    scenario.rerun("a")
    scenario.complete("a", "b")

    assert (scenario.status, scenario.statuses) == ("COMPLETED", {"a": "COMPLETED", "b": "COMPLETED"})


def test_a_permitted_failure_before_the_task_is_preserved(clock):
    scenario = Scenario(clock, step("a", permissive=True), step("b"))
    scenario.worker("a").fails()
    scenario.complete("b")
    assert scenario.status == "FAILED"

    scenario.rerun("b")
    scenario.complete("b")
    assert scenario.status == "FAILED"

    scenario.retry()
    scenario.complete("a")
    assert (scenario.status, scenario.attempts("b")) == ("COMPLETED", ["COMPLETED"])


def test_a_permitted_failure_that_a_join_waits_for_is_repeated(clock):
    scenario = Scenario(clock, *fork([step("a", permissive=True)], [step("b")]), step("z"))
    scenario.worker("a").fails()
    scenario.complete("b")
    assert scenario.statuses["join"] == "FAILED"

    scenario.rerun("b")
    assert scenario.statuses["a"] == "SCHEDULED"

    scenario.complete("a", "b", "z")
    assert scenario.status == "COMPLETED"


def test_two_joins_on_the_same_task_both_wait_again(clock):
    scenario = Scenario(clock, *fork([step("a")], [step("b")]), join("second", ["a"]), step("z"))
    scenario.complete("a", "b", "z")

    scenario.rerun("a")

    assert (scenario.statuses["join"], "second" in scenario.statuses) == ("IN_PROGRESS", False)
    scenario.complete("a", "z")
    assert scenario.status == "COMPLETED"


def test_a_terminate_step_after_the_task_is_executed_again(clock):
    scenario = Scenario(clock, step("a"), terminate("t", "FAILED", "no"), step("z"))
    scenario.complete("a")
    assert (scenario.status, scenario.reason) == ("FAILED", "no")

    scenario.rerun("a")
    assert (scenario.status, scenario.statuses) == ("RUNNING", {"a": "SCHEDULED"})

    scenario.complete("a")
    assert scenario.status == "FAILED"


def test_a_terminate_step_in_another_branch_is_executed_again(clock):
    stopper = switch("way", {"stop": [terminate("t", "TERMINATED", "no")]}, inputs={"way": "${b.output.way}"})
    scenario = Scenario(clock, *fork([step("a")], [step("b"), stopper], on=["a", "way"]), step("z"))
    scenario.worker("b").completes(way="stop")
    assert (scenario.status, scenario.statuses["a"]) == ("TERMINATED", "CANCELED")

    scenario.rerun("a")
    assert (scenario.statuses["a"], scenario.statuses["b"]) == ("SCHEDULED", "SCHEDULED")
    assert "t" not in scenario.statuses

    scenario.worker("b").completes(way="go")
    scenario.complete("a", "z")
    assert scenario.status == "COMPLETED"
    assert_consistent(scenario)


def test_a_late_report_is_ignored_after_a_rerun(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    scenario.worker("a").polls()
    scenario.terminate()
    scenario.rerun("a")

    assert not scenario.worker("a").completes(from_lease="the first one")
    scenario.worker("a", "another").polls()
    scenario.worker("a").held = scenario.worker("a", "another").held
    assert not scenario.worker("a").completes(from_lease="the first one")
    assert scenario.worker("a", "another").completes(from_lease="the second one")
    assert scenario.task("a").output == {"from_lease": "the second one"}
    scenario.complete("b")
    assert scenario.status == "COMPLETED"


def test_a_rerun_run_can_fail_and_be_rerun_again(clock):
    scenario = Scenario(clock, step("a"), step("b"))
    for _ in range(3):
        scenario.complete("a")
        scenario.worker("b").fails()
        assert scenario.status == "FAILED"
        scenario.rerun("a")
    assert scenario.row.failed_refs == []
    scenario.complete("a", "b")

    assert scenario.status == "COMPLETED"


def test_a_run_without_workers_is_repeated_to_its_end(clock):
    scenario = Scenario(clock, noop("n"), set_variable("v", n="${workflow.input.n}"), input={"n": 1})
    assert scenario.status == "COMPLETED"

    scenario.rerun("v", input={"n": 2})

    assert (scenario.status, scenario.row.variables) == ("COMPLETED", {"n": 2})
