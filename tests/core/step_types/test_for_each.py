"""FOR_EACH: a body for each item of a list."""

import pytest

from conductor_app.core.commands import Rerun, jump_to_step, skip_step
from conductor_app.core.definition import Key
from conductor_app.core.errors import Conflict, NotFound
from tests.builders import catch, each, fork, loop, noop, plan, policy, step, switch, try_
from tests.core.simulated_run import RunInMemory

ORDER = {"item": "${each.output.item}", "n": "${each.output.index}"}


def start_with_three_items(*body, **settings) -> RunInMemory:
    """Start a run with a FOR_EACH of three items and a step after it."""
    return RunInMemory(plan(each("each", *body, items=["x", "y", "z"], **settings), step("after")))


def test_items_are_worked_on_one_after_another_each_with_its_own_input():
    run = start_with_three_items(step("a", inputs=ORDER))

    for number, item in enumerate("xyz"):
        key = f"a__{number + 1}__1"
        assert run.waiting == [key]
        assert run.task(key).attempt.input == {"item": item, "n": number}
        run.completes(key, got=item)

    assert run.waiting == ["after"]
    results = [{"a": {"got": item}} for item in "xyz"]
    assert run.task("each").attempt.output == {"count": 3, "results": results, "errors": []}


def test_the_number_of_parallel_items_is_limited():
    run = start_with_three_items(step("a"), parallel=2)

    assert run.waiting == ["a__1__1", "a__2__1"]
    assert run.completes("a__2__1").waiting == ["a__1__1", "a__3__1"]
    run.completes("a__3__1", n=3).completes("a__1__1", n=1)

    assert run.waiting == ["after"]
    assert [result["a"].get("n") for result in run.task("each").attempt.output["results"]] == [1, None, 3]


def test_references_between_steps_of_an_item_stay_within_the_item():
    seen = {"mine": "${a.output.n}", "outside": "${first.output.n}", "count": "${each.output.index}"}
    body = [step("a"), step("b", inputs=seen)]
    run = RunInMemory(plan(step("first"), each("each", *body, items=[1, 2], parallel=2)))
    run.completes("first", n=9).completes("a__1__1", n=1).completes("a__2__1", n=2)

    assert [run.task(f"b__{n}__1").attempt.input for n in (1, 2)] == [
        {"mine": 1, "outside": 9, "count": 0},
        {"mine": 2, "outside": 9, "count": 1},
    ]


def test_a_loop_inside_an_item_reads_its_own_iterations_and_the_item():
    body = loop("l", step("a", inputs={"turn": "${l.output.iteration}", "item": "${each.output.item}"}), times=2)
    run = start_with_three_items(body, parallel=3)
    run.completes("a__1__1__1", "a__3__1__1")

    assert run.task("a__3__1__2").attempt.input == {"turn": 2, "item": "z"}
    assert run.task("a__2__1__1").attempt.input == {"turn": 1, "item": "y"}


def test_lists_of_lists_can_be_nested():
    inner = each(
        "in", step("a", inputs={"x": "${in.output.item}", "of": "${out.output.index}"}), items="${out.output.item}"
    )
    run = RunInMemory(plan(each("out", inner, items=[[1, 2], [], [3]]), step("after")))

    assert run.task("a__1__1__1__1").attempt.input == {"x": 1, "of": 0}
    run.completes("a__1__1__1__1", "a__1__1__2__1")
    assert run.task("a__3__1__1__1").attempt.input == {"x": 3, "of": 2}

    assert run.completes("a__3__1__1__1").waiting == ["after"]
    counts = [result["in"]["count"] for result in run.task("out").attempt.output["results"]]
    assert counts == [2, 0, 1]


@pytest.mark.parametrize(("items", "count"), [([], 0), ("${workflow.input.one}", 1)])
def test_an_empty_list_has_no_items_and_a_single_value_is_one(items, count):
    run = RunInMemory(plan(each("each", noop("a"), items=items)), {"one": 7})

    output = run.task("each").attempt.output
    assert (run.status, output["count"], len(output["results"])) == ("COMPLETED", count, count)


def test_items_without_a_value_fail_the_step_with_a_reason():
    run = RunInMemory(plan(each("each", noop("a"), items="${workflow.input.none}")))

    assert run.status == "FAILED"
    assert "The items of each are null. Give a list: an empty one runs nothing." in run.snapshot.reason


@pytest.mark.parametrize(
    ("settings", "expected_reason"),
    [
        ({"parallel": "${workflow.input.x}"}, 'parallel of each must be a whole number of at least 1, not "x"'),
        ({"parallel": 0}, "must be a whole number of at least 1, not 0"),
        ({"keepLastN": "few"}, "keepLastN of each must be a whole number"),
        ({"onItemFailure": "IGNORE"}, "must be FAIL or CONTINUE"),
    ],
)
def test_invalid_settings_fail_the_step(settings, expected_reason):
    run = RunInMemory(plan(each("each", step("a"), items=[1], **settings)), {"x": "x"})

    assert (run.status, expected_reason in run.snapshot.reason) == ("FAILED", True)


def test_a_failure_ends_the_other_items_and_the_step():
    run = start_with_three_items(step("a"), parallel=2)
    run.completes("a__1__1", n=1)

    run.fails("a__3__1", "broken")

    assert (run.status, "broken" in run.snapshot.reason) == ("FAILED", True)
    assert run.statuses | {"a__2__1": "CANCELED", "each_item__2": "CANCELED", "each": "FAILED"} == run.statuses
    output = run.task("each").attempt.output
    assert output["results"] == [{"a": {"n": 1}}, None, None]
    assert output["errors"][-1] == {"index": 2, "reason": "broken"}


def test_with_continue_a_failed_item_does_not_stop_the_others():
    run = start_with_three_items(*fork([step("a")], [step("b")]), parallel=2, onItemFailure="CONTINUE")

    run.fails("a__1__1", "broken")
    assert run.statuses["b__1__1"] == "CANCELED"
    assert run.waiting == ["a__2__1", "b__2__1", "a__3__1", "b__3__1"]
    run.completes("a__2__1", "b__2__1", "a__3__1", "b__3__1")

    assert run.completes("after").status == "COMPLETED"
    assert run.task("each").attempt.output["errors"] == [{"index": 0, "reason": "broken"}]
    assert run.statuses["each_item__1"] == "COMPLETED_WITH_ERRORS"


def test_a_failure_of_the_step_or_of_an_item_is_caught():
    body = each("each", try_("t", step("a"), default=[step("c")]), step("b"), items=[1, 2])
    run = RunInMemory(plan(try_("out", body, on=[catch(step("d"), taskRef="each")])))

    run.fails("a__1__1__1__1").completes("c__1__1__1__2")
    assert run.waiting == ["b__1__1__1"]
    run.fails("b__1__1__1", "broken")

    assert (run.waiting, run.task("out").attempt.output["error"]["reason"]) == (["d__2"], "broken")


def test_a_permissive_failure_fails_the_item_at_its_end():
    run = start_with_three_items(step("a", permissive=True), step("b"), onItemFailure="CONTINUE")

    run.fails("a__1__1", "so what")
    assert run.waiting == ["b__1__1"]
    run.completes("b__1__1", "a__2__1", "b__2__1", "a__3__1", "b__3__1", "after")

    assert (run.status, run.task("each").attempt.output["errors"]) == (
        "COMPLETED",
        [{"index": 0, "reason": "so what"}],
    )


def test_a_time_limit_that_would_end_the_run_ends_the_item():
    limits = policy(timeout_seconds=10, timeout_policy="TIME_OUT_WF")
    run = start_with_three_items(step("a", policy=limits), onItemFailure="CONTINUE")
    run.claim("a__1__1")

    run.later(10)

    assert (run.status, run.waiting) == ("RUNNING", ["a__2__1"])


def test_items_without_worker_tasks_complete_immediately():
    body = switch("c", {"work": [step("a")]}, inputs={"c": "${each.output.item}"})
    items = ["none"] * 150 + ["work"] + ["none"] * 150
    run = RunInMemory(plan(each("each", body, items=items), step("after")))

    assert run.waiting == ["a__151__1"]
    assert run.completes("a__151__1").waiting == ["after"]
    assert len(run.task("each").attempt.output["results"]) == 301


def test_keep_last_n_deletes_tasks_of_older_items():
    run = start_with_three_items(step("a"), parallel=2, keepLastN=1)
    run.completes("a__2__1", "a__1__1")

    assert {str(key) for key in run.snapshot.tasks} == {"each", "each_item__1", "a__1__1", "each_item__3", "a__3__1"}
    run.completes("a__3__1", n=3)

    assert run.task("each").attempt.output == {"count": 3, "results": [None, None, {"a": {"n": 3}}], "errors": []}


def test_a_rerun_inside_a_parallel_item_does_not_change_other_items():
    run = start_with_three_items(step("a"), step("b"), parallel=3)
    for number in (1, 2, 3):
        run.completes(f"a__{number}__1", f"b__{number}__1", n=number)
    run.completes("after")

    run.apply(Rerun(Key("a", (2, 1))))

    assert run.waiting == ["a__2__1"]
    assert run.task("a__2__1").attempt.input == {}
    run.completes("a__2__1", "b__2__1", n=9).completes("after")
    assert [result["b"]["n"] for result in run.task("each").attempt.output["results"]] == [1, 9, 3]
    assert run.status == "COMPLETED"


def test_a_rerun_inside_a_sequential_item_reverts_the_items_after_it():
    run = start_with_three_items(step("a", inputs=ORDER))
    run.completes("a__1__1", "a__2__1", "a__3__1", "after")

    run.apply(Rerun(Key("a", (2, 1))))

    assert {str(key) for key in run.snapshot.tasks} == {"each", "each_item__1", "a__1__1", "each_item__2", "a__2__1"}
    run.completes("a__2__1", "a__3__1")
    assert (run.task("a__3__1").attempt.input["item"], run.waiting) == ("z", ["after"])


@pytest.mark.parametrize("parallel", [1, 3])
def test_an_item_can_be_rerun_completely(parallel):
    run = start_with_three_items(step("a"), step("b"), parallel=parallel)
    while run.waiting:
        run.completes(run.waiting[0])

    run.apply(Rerun(Key("each_item", (2,))))

    assert run.waiting == ["a__2__1"]
    while run.waiting:
        run.completes(run.waiting[0])
    assert (run.status, len(run.task("each").attempt.output["results"])) == ("COMPLETED", 3)


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_retry_repeats_the_failed_item_and_the_items_canceled_with_it(parallel):
    run = start_with_three_items(step("a"), parallel=parallel)
    run.fails("a__1__1")
    assert run.status == "FAILED"

    run.retry()

    assert run.waiting == ["a__1__1", "a__2__1"][:parallel]
    run.completes("a__1__1", "a__2__1", "a__3__1", "after")
    assert (run.status, run.task("each").attempt.output["errors"]) == ("COMPLETED", [])


def test_a_retry_does_not_repeat_permitted_failures():
    run = start_with_three_items(step("a"), parallel=3, onItemFailure="CONTINUE")
    run.fails("a__1__1").completes("a__2__1", "a__3__1").fails("after")

    assert run.retry().waiting == ["after"]


def test_a_step_of_a_later_item_can_be_skipped():
    run = start_with_three_items(step("a"), step("b"))

    run.apply(skip_step("a__3__1"))
    run.completes("a__1__1", "b__1__1", "a__2__1", "b__2__1")

    assert run.waiting == ["b__3__1"]
    with pytest.raises(Conflict, match="is over"):
        run.apply(skip_step("a__1__1"))
    with pytest.raises(NotFound):
        run.apply(skip_step("each_item__3"))


def test_a_jump_leads_into_the_item_that_began_last():
    run = RunInMemory(plan(step("first"), each("each", step("a"), step("b", inputs=ORDER), items=["x", "y"])))

    run.apply(jump_to_step("b"))
    assert (run.waiting, run.task("b__1__1").attempt.input["item"]) == (["b__1__1"], "x")
    run.completes("b__1__1")
    run.apply(jump_to_step("b"))

    assert run.waiting == ["b__2__1"]
    assert run.completes("b__2__1").status == "COMPLETED"
