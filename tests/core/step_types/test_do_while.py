"""DO_WHILE: loops by condition and by list, nested, in forks and around forks (execution §8.9, §12 item 8)."""

import pytest

from conductor_app.core.data_requests import ScriptResult
from conductor_app.core.decide import decide
from conductor_app.core.definition import Key
from conductor_app.core.snapshot import Run
from tests.builders import fork, loop, noop, plan, policy, step, switch, wait
from tests.core.simulated_run import RunInMemory


def test_a_loop_iterates_while_its_condition_is_true():
    run = RunInMemory(plan(loop("l", step("a"), step("b"), times=2), step("c")))
    assert run.statuses == {"l": "IN_PROGRESS", "a__1": "SCHEDULED"}

    run.completes("a__1", n=1).completes("b__1", n=2)
    assert run.statuses["a__2"] == "SCHEDULED"
    assert run.task("l").attempt.output == {"1": {"a": {"n": 1}, "b": {"n": 2}}, "iteration": 2}

    run.completes("a__2", "b__2")
    assert run.statuses["l"] == "COMPLETED"
    assert run.statuses["c"] == "SCHEDULED"


def test_a_loop_with_a_false_condition_runs_one_iteration():
    run = RunInMemory(plan(loop("l", step("a"), loopCondition="never")), scripts={"never": False}).completes("a__1")

    assert run.status == "COMPLETED"
    assert run.task("l").attempt.output["iteration"] == 1


@pytest.mark.parametrize(
    ("answer", "continues"), [(True, True), (1, True), (0.5, True), (0, False), ("yes", False), (None, False)]
)
def test_a_truth_or_a_number_above_zero_continues(answer, continues):
    run = RunInMemory(plan(loop("l", step("a"), loopCondition="again")), scripts={"again": answer}).completes("a__1")

    assert ("a__2" in run.statuses) == continues


def test_a_long_loop_without_workers_continues_in_further_decisions():
    definition = plan(loop("l", noop("n"), times=700), step("after"))
    run, decisions = Run("run", definition, "RUNNING", 0, input={}, output={}, variables={}), 0
    while not (decisions and run.wake_at > 0):
        decision = decide(run, {}, 0)
        run, decisions = decision.after, decisions + 1

    assert 1 < decisions < 10
    assert run.tasks[Key("l")].iteration == 700
    assert run.tasks[Key("after")].is_open


def test_the_condition_can_read_inputs_outputs_and_the_loop():
    seen = {}
    scripts = {"again": lambda inputs: seen.update(inputs) or False}
    run = RunInMemory(plan(loop("l", step("a"), loopCondition="again", inputs={"most": 3})), scripts=scripts)

    run.completes("a__1", key="v")

    assert seen == {"most": 3, "a": {"key": "v"}, "l": {"1": {"a": {"key": "v"}}, "iteration": 1}}


def test_a_condition_that_fails_fails_the_loop_for_good():
    scripts = {"again": ScriptResult(error="oops")}
    run = RunInMemory(plan(loop("l", step("a"), loopCondition="again")), scripts=scripts).completes("a__1")

    assert run.statuses["l"] == "FAILED_WITH_TERMINAL_ERROR"
    assert (run.status, "oops" in run.snapshot.reason) == ("FAILED", True)


@pytest.mark.parametrize(
    ("items", "count"),
    [([], 0), (["x"], 1), (["x", "y", "z"], 3), ("single", 1), (None, 0)],
    ids=lambda value: str(value),
)
def test_a_loop_over_a_list_has_one_iteration_per_item(items, count):
    fields = {"items": "${workflow.input.items}"}
    inputs = {"item": "${l.output.loopItem}", "index": "${l.output.loopIndex}"}
    run = RunInMemory(plan(loop("l", step("a", inputs=inputs), **fields)), {"items": items})
    seen = []

    for iteration in range(1, count + 1):
        seen.append(run.task(f"a__{iteration}").attempt.input)
        run.completes(f"a__{iteration}")

    assert run.status == "COMPLETED"
    expected = items or [] if isinstance(items, list | None) else [items]
    assert seen == [{"item": item, "index": index} for index, item in enumerate(expected)]
    assert run.task("l").attempt.output["iteration"] == count


def test_a_loop_with_a_list_and_a_condition_needs_both():
    fields = {"inputs": {"_items": [1, 2, 3]}, "loopCondition": "small"}
    run = RunInMemory(plan(loop("l", step("a"), **fields)), scripts={"small": lambda seen: seen["loopItem"] < 2})

    assert run.completes("a__1", "a__2").status == "COMPLETED"


FOR_EACH_TASK = "if ( $.l.iteration < 0 ) { true; } else { false; }"


@pytest.mark.parametrize("condition", [FOR_EACH_TASK, "", None], ids=["ForEachTask of the Python SDK", "empty", "none"])
def test_the_input_items_is_the_list_of_a_loop_without_a_condition_of_its_own(condition):
    inputs = {"number": "${l.output.loopIndex}", "item": "${l.output.item}", "index": "${l.output.index}"}
    body = step("a", inputs={"loopItem": "${l.output.loopItem}", **inputs})
    fields = {"inputs": {"items": "${workflow.input.items}"}, "loopCondition": condition}
    run = RunInMemory(plan(loop("l", body, **fields)), {"items": ["x", "y"]})

    first = run.task("a__1").attempt.input
    run.completes("a__1")
    second = run.task("a__2").attempt.input

    assert first == {"loopItem": "x", "number": 0, "item": "x", "index": 0}
    assert second == {"loopItem": "y", "number": 1, "item": "y", "index": 1}
    assert run.completes("a__2").status == "COMPLETED"


@pytest.mark.parametrize("items", [[], None])
def test_a_loop_over_an_empty_input_has_no_iteration(items):
    fields = {"inputs": {"items": "${workflow.input.items}"}, "loopCondition": FOR_EACH_TASK}
    run = RunInMemory(plan(loop("l", step("a"), **fields)), {"items": items})

    assert (run.status, run.statuses) == ("COMPLETED", {"l": "COMPLETED"})


def test_the_input_items_of_a_loop_with_a_condition_is_an_input_like_any_other():
    fields = {"inputs": {"items": [1, 2, 3]}, "loopCondition": "again"}
    scripts = {"again": lambda seen: len(seen["items"]) > seen["l"]["iteration"] + 1}
    run = RunInMemory(plan(loop("l", step("a"), **fields)), scripts=scripts)

    run.completes("a__1", "a__2")

    assert (run.status, "loopItem" in run.task("l").attempt.output) == ("COMPLETED", False)


def test_old_iterations_are_deleted_with_keep_last_n():
    run = RunInMemory(plan(loop("l", step("a"), times=4, inputs={"keepLastN": 2})))

    run.completes("a__1", "a__2", "a__3", "a__4")

    assert list(run.statuses) == ["l", "a__3", "a__4"]
    assert sorted(run.task("l").attempt.output) == ["3", "4", "iteration"]


def test_an_invalid_keep_last_n_fails_the_loop():
    run = RunInMemory(plan(loop("l", step("a"), times=2, inputs={"keepLastN": "many"}))).completes("a__1")

    assert run.status == "FAILED"
    assert "keepLastN" in run.snapshot.reason


def test_a_failure_in_the_second_iteration_can_be_retried_there():
    run = RunInMemory(plan(loop("l", step("a"), step("b"), times=2))).completes("a__1", "b__1", "a__2").fails("b__2")
    assert (run.status, run.statuses["l"]) == ("FAILED", "CANCELED")

    run.retry()

    assert run.statuses["l"] == "IN_PROGRESS"
    assert (run.statuses["b__2"], run.task("b__2").attempt.number) == ("SCHEDULED", 1)
    assert run.completes("b__2").status == "COMPLETED"


def test_each_iteration_has_all_retries():
    run = RunInMemory(plan(loop("l", step("a", policy=policy(retries=1)), times=2))).fails("a__1").completes("a__1")

    assert run.task("a__2").attempt.number == 0
    assert run.fails("a__2").completes("a__2").status == "COMPLETED"


def test_a_permissive_failure_fails_the_loop_at_the_end_of_the_iteration():
    run = RunInMemory(plan(loop("l", step("a", permissive=True), step("b"), times=2))).fails("a__1", "no luck")
    assert run.statuses["b__1"] == "SCHEDULED"

    run.completes("b__1")

    assert (run.status, run.statuses["l"], run.task("l").attempt.reason) == ("FAILED", "FAILED", "no luck")


def test_a_loop_body_can_contain_a_switch():
    body = switch("way", {"x": [step("a"), step("b")]}, inputs={"case": "x"})
    run = RunInMemory(plan(loop("l", body, step("c"), times=2)))

    for iteration in (1, 2):
        run.completes(f"a__{iteration}", f"b__{iteration}", f"c__{iteration}")

    assert run.status == "COMPLETED"


def test_nested_loops_count_their_iterations_separately():
    run = RunInMemory(plan(loop("outer", step("a"), loop("inner", step("b"), times=2), step("c"), times=2), step("d")))

    for iteration in (1, 2):
        run.completes(f"a__{iteration}", f"b__{iteration}__1")
        assert f"c__{iteration}" not in run.statuses
        run.completes(f"b__{iteration}__2", f"c__{iteration}")

    assert run.statuses["d"] == "SCHEDULED"
    assert run.task("inner__2").attempt.output["iteration"] == 2


def test_a_loop_in_a_fork_in_a_loop_completes():
    body = fork([loop("inner", step("a"), times=2)], [step("b")])
    run = RunInMemory(plan(loop("outer", *body, times=2)))

    for iteration in (1, 2):
        run.completes(f"b__{iteration}", f"a__{iteration}__1", f"a__{iteration}__2")

    assert run.status == "COMPLETED"


def test_a_loop_can_run_many_iterations_within_one_decision():
    run = RunInMemory(plan(loop("l", noop("a"), times=100), step("b")))

    assert run.statuses["b"] == "SCHEDULED"
    assert run.task("l").iteration == 100


def test_a_loop_with_a_wait_iterates_on_time():
    run = RunInMemory(plan(loop("l", wait("pause", duration="10 s"), times=3)))

    assert run.later(29).status == "RUNNING"
    assert run.later(1).status == "COMPLETED"


def test_a_loop_without_a_body_fails_with_a_reason():
    run = RunInMemory(plan(loop("l", times=2)))

    assert (run.status, "loopOver" in run.snapshot.reason) == ("FAILED", True)
