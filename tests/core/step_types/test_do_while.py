"""DO_WHILE: loops by condition and by list, nested, in forks and around forks (execution §8.9, §12 item 8)."""

import pytest

from conductor_app.core.data_requests import ScriptResult
from tests.builders import fork, loop, noop, plan, policy, step, switch, wait
from tests.core.simulated_run import RunInMemory


def test_a_loop_iterates_while_its_condition_is_true():
    life = RunInMemory(plan(loop("l", step("a"), step("b"), times=2), step("c")))
    assert life.statuses == {"l": "IN_PROGRESS", "a__1": "SCHEDULED"}

    life.completes("a__1", n=1).completes("b__1", n=2)
    assert life.statuses["a__2"] == "SCHEDULED"
    assert life.task("l").attempt.output == {"1": {"a": {"n": 1}, "b": {"n": 2}}, "iteration": 2}

    life.completes("a__2", "b__2")
    assert life.statuses["l"] == "COMPLETED"
    assert life.statuses["c"] == "SCHEDULED"


def test_a_loop_with_a_false_condition_runs_one_iteration():
    life = RunInMemory(plan(loop("l", step("a"), loopCondition="never")), scripts={"never": False}).completes("a__1")

    assert life.status == "COMPLETED"
    assert life.task("l").attempt.output["iteration"] == 1


@pytest.mark.parametrize(
    ("answer", "goes_on"), [(True, True), (1, True), (0.5, True), (0, False), ("yes", False), (None, False)]
)
def test_a_truth_or_a_number_above_zero_continues(answer, goes_on):
    life = RunInMemory(plan(loop("l", step("a"), loopCondition="again")), scripts={"again": answer}).completes("a__1")

    assert ("a__2" in life.statuses) == goes_on


def test_the_condition_can_read_inputs_outputs_and_the_loop():
    seen = {}
    scripts = {"again": lambda inputs: seen.update(inputs) or False}
    life = RunInMemory(plan(loop("l", step("a"), loopCondition="again", inputs={"most": 3})), scripts=scripts)

    life.completes("a__1", key="v")

    assert seen == {"most": 3, "a": {"key": "v"}, "l": {"1": {"a": {"key": "v"}}, "iteration": 1}}


def test_a_condition_that_fails_fails_the_loop_for_good():
    broken = {"again": ScriptResult(error="oops")}
    life = RunInMemory(plan(loop("l", step("a"), loopCondition="again")), scripts=broken).completes("a__1")

    assert life.statuses["l"] == "FAILED_WITH_TERMINAL_ERROR"
    assert (life.status, "oops" in life.run.reason) == ("FAILED", True)


@pytest.mark.parametrize(
    ("items", "turns"),
    [([], 0), (["x"], 1), (["x", "y", "z"], 3), ("single", 1), (None, 0)],
    ids=lambda value: str(value),
)
def test_a_loop_over_a_list_has_one_iteration_per_item(items, turns):
    fields = {"items": "${workflow.input.items}"}
    inputs = {"item": "${l.output.loopItem}", "index": "${l.output.loopIndex}"}
    life = RunInMemory(plan(loop("l", step("a", inputs=inputs), **fields)), {"items": items})
    seen = []

    for turn in range(1, turns + 1):
        seen.append(life.task(f"a__{turn}").attempt.input)
        life.completes(f"a__{turn}")

    assert life.status == "COMPLETED"
    expected = items or [] if isinstance(items, list | None) else [items]
    assert seen == [{"item": item, "index": index} for index, item in enumerate(expected)]
    assert life.task("l").attempt.output["iteration"] == turns


def test_a_loop_with_a_list_and_a_condition_needs_both():
    fields = {"inputs": {"_items": [1, 2, 3]}, "loopCondition": "small"}
    life = RunInMemory(plan(loop("l", step("a"), **fields)), scripts={"small": lambda seen: seen["loopItem"] < 2})

    assert life.completes("a__1", "a__2").status == "COMPLETED"


def test_old_iterations_are_deleted_with_keep_last_n():
    life = RunInMemory(plan(loop("l", step("a"), times=4, inputs={"keepLastN": 2})))

    life.completes("a__1", "a__2", "a__3", "a__4")

    assert list(life.statuses) == ["l", "a__3", "a__4"]
    assert sorted(life.task("l").attempt.output) == ["3", "4", "iteration"]


def test_an_invalid_keep_last_n_fails_the_loop():
    life = RunInMemory(plan(loop("l", step("a"), times=2, inputs={"keepLastN": "many"}))).completes("a__1")

    assert life.status == "FAILED"
    assert "keepLastN" in life.run.reason


def test_a_failure_in_the_second_iteration_can_be_retried_there():
    life = RunInMemory(plan(loop("l", step("a"), step("b"), times=2))).completes("a__1", "b__1", "a__2").fails("b__2")
    assert (life.status, life.statuses["l"]) == ("FAILED", "CANCELED")

    life.retry()

    assert life.statuses["l"] == "IN_PROGRESS"
    assert (life.statuses["b__2"], life.task("b__2").attempt.number) == ("SCHEDULED", 1)
    assert life.completes("b__2").status == "COMPLETED"


def test_each_iteration_has_all_retries():
    life = RunInMemory(plan(loop("l", step("a", policy=policy(retries=1)), times=2))).fails("a__1").completes("a__1")

    assert life.task("a__2").attempt.number == 0
    assert life.fails("a__2").completes("a__2").status == "COMPLETED"


def test_a_permissive_failure_fails_the_loop_at_the_end_of_the_iteration():
    life = RunInMemory(plan(loop("l", step("a", permissive=True), step("b"), times=2))).fails("a__1", "no luck")
    assert life.statuses["b__1"] == "SCHEDULED"

    life.completes("b__1")

    assert (life.status, life.statuses["l"], life.task("l").attempt.reason) == ("FAILED", "FAILED", "no luck")


def test_a_loop_body_can_contain_a_switch():
    body = switch("way", {"x": [step("a"), step("b")]}, inputs={"case": "x"})
    life = RunInMemory(plan(loop("l", body, step("c"), times=2)))

    for turn in (1, 2):
        life.completes(f"a__{turn}", f"b__{turn}", f"c__{turn}")

    assert life.status == "COMPLETED"


def test_nested_loops_count_their_iterations_separately():
    life = RunInMemory(plan(loop("outer", step("a"), loop("inner", step("b"), times=2), step("c"), times=2), step("d")))

    for turn in (1, 2):
        life.completes(f"a__{turn}", f"b__{turn}__1")
        assert f"c__{turn}" not in life.statuses
        life.completes(f"b__{turn}__2", f"c__{turn}")

    assert life.statuses["d"] == "SCHEDULED"
    assert life.task("inner__2").attempt.output["iteration"] == 2


def test_a_loop_in_a_fork_in_a_loop_completes():
    body = fork([loop("inner", step("a"), times=2)], [step("b")])
    life = RunInMemory(plan(loop("outer", *body, times=2)))

    for turn in (1, 2):
        life.completes(f"b__{turn}", f"a__{turn}__1", f"a__{turn}__2")

    assert life.status == "COMPLETED"


def test_a_loop_can_run_many_iterations_within_one_decision():
    life = RunInMemory(plan(loop("l", noop("a"), times=100), step("b")))

    assert life.statuses["b"] == "SCHEDULED"
    assert life.task("l").iteration == 100


def test_a_loop_with_a_wait_iterates_on_time():
    life = RunInMemory(plan(loop("l", wait("pause", duration="10 s"), times=3)))

    assert life.later(29).status == "RUNNING"
    assert life.later(1).status == "COMPLETED"


def test_a_loop_without_a_body_fails_with_a_reason():
    life = RunInMemory(plan(loop("l", times=2)))

    assert (life.status, "loopOver" in life.run.reason) == ("FAILED", True)
