"""JOIN and FORK_JOIN: statuses of branches and of the join (execution §12, item 7)."""

import pytest

from tests.builders import fork, human, join, loop, noop, plan, policy, set_variable, step, switch
from tests.core.simulated_run import RunInMemory

OPTIONAL, PERMISSIVE = {"optional": True}, {"permissive": True}


def two_branches(**fields) -> RunInMemory:
    return RunInMemory(plan(fork([step("a", **fields)], [step("b")]), step("c")))


def test_a_fork_enters_every_branch_and_its_join():
    run = two_branches()

    assert run.statuses == {"fork_join": "COMPLETED", "a": "SCHEDULED", "b": "SCHEDULED", "join": "IN_PROGRESS"}


def test_a_join_waits_for_its_slowest_branch():
    run = two_branches().completes("a", n=1)
    assert run.statuses["join"] == "IN_PROGRESS"

    run.completes("b", n=2)

    assert run.statuses["join"] == "COMPLETED"
    assert run.statuses["c"] == "SCHEDULED"
    assert run.task("join").attempt.output == {"a": {"n": 1}, "b": {"n": 2}}


def test_a_join_leaves_out_branches_without_output():
    run = two_branches().completes("a", n=1).completes("b")

    assert run.task("join").attempt.output == {"a": {"n": 1}}


def test_a_join_completes_with_errors_if_an_optional_branch_did():
    run = two_branches(**OPTIONAL).fails("a").completes("b")

    assert run.statuses["join"] == "COMPLETED_WITH_ERRORS"
    assert run.task("join").attempt.reason == f"a/{run.task('a').attempt.id}"
    assert run.completes("c").status == "COMPLETED"


def test_a_permissive_branch_fails_the_join_after_all_branches_have_ended():
    run = two_branches(**PERMISSIVE).fails("a", "no funds")
    assert (run.status, run.statuses["join"]) == ("RUNNING", "IN_PROGRESS")

    run.completes("b")

    assert (run.status, run.statuses["join"]) == ("FAILED", "FAILED")
    assert run.task("join").attempt.reason == "no funds"


def test_a_join_of_canceled_tasks_is_canceled():
    run = two_branches(**PERMISSIVE).ends("a", "CANCELED").completes("b")

    assert (run.status, run.statuses["join"]) == ("TERMINATED", "CANCELED")


def test_a_failure_in_one_branch_cancels_the_others():
    run = two_branches().fails("a", "no funds")

    assert run.status == "FAILED"
    assert run.statuses == {"fork_join": "COMPLETED", "a": "FAILED", "b": "CANCELED", "join": "CANCELED"}


def test_a_join_ignores_a_failure_that_is_retried():
    run = two_branches(policy=policy(retries=1)).completes("b").fails("a")
    assert run.statuses["join"] == "IN_PROGRESS"

    assert run.completes("a").statuses["join"] == "COMPLETED"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([join("j", []), step("c")], id="join without a fork"),
        pytest.param([*fork(on=[], join="j"), step("c")], id="fork without branches"),
        pytest.param([*fork([], [noop("a")], join="j"), step("c")], id="fork with an empty branch"),
        pytest.param(
            [*fork([noop("a")], [set_variable("b", n=1)], join="j"), step("c")], id="branches that complete immediately"
        ),
    ],
)
def test_a_join_without_tasks_completes_immediately(steps):
    run = RunInMemory(plan(*steps))

    assert run.statuses["j"] == "COMPLETED"
    assert run.statuses["c"] == "SCHEDULED"


def test_a_join_waits_only_for_the_tasks_that_it_names():
    run = RunInMemory(plan(fork([step("a")], [step("b")], on=["a"]), step("c"))).completes("a")

    assert run.statuses["c"] == "SCHEDULED"
    assert run.completes("c").status == "RUNNING"
    assert run.completes("b").status == "COMPLETED"


def test_a_join_in_a_loop_joins_the_tasks_of_its_iteration():
    run = RunInMemory(plan(loop("l", *fork([step("a")], [step("b")]), times=2)))

    run.completes("a__1", n=1).completes("b__1", n=2)

    assert run.task("join__1").attempt.output == {"a__1": {"n": 1}, "b__1": {"n": 2}}
    assert run.statuses["join__2"] == "IN_PROGRESS"
    assert run.completes("a__2", "b__2").status == "COMPLETED"


def test_forks_may_be_nested():
    inner = fork([step("a")], [step("b")], join="inner")
    run = RunInMemory(plan(fork(inner, [step("c")], join="outer"), step("d")))

    run.completes("a", "c")
    assert run.statuses["outer"] == "IN_PROGRESS"

    assert run.completes("b").statuses["d"] == "SCHEDULED"


def test_a_branch_may_end_in_a_loop():
    run = RunInMemory(plan(fork([loop("l", step("a"), times=2)], [step("b")]), step("c"))).completes("b", "a__1")
    assert run.statuses["join"] == "IN_PROGRESS"

    assert run.completes("a__2").statuses["c"] == "SCHEDULED"


def test_a_join_waits_for_the_case_of_a_switch_at_the_end_of_a_branch():
    run = RunInMemory(plan(fork([switch("way", {"x": [human("a")]})], [noop("b")], on=["a"]), step("c")), {"way": "x"})
    assert run.statuses["join"] == "IN_PROGRESS"

    assert run.completes("a").statuses["c"] == "SCHEDULED"


def test_a_join_that_can_never_complete_fails_with_a_reason():
    run = RunInMemory(
        plan(fork([switch("way", {"x": [step("a")]}, [step("d")])], [step("b")], on=["a", "b"])), {"way": "y"}
    )
    run.completes("b")
    assert run.statuses["join"] == "IN_PROGRESS"

    run.completes("d")

    assert (run.status, run.statuses["join"]) == ("FAILED", "FAILED_WITH_TERMINAL_ERROR")
    assert run.task("join").attempt.reason == (
        "join cannot complete: no open task leads to a. A retry fails in the same way: correct `joinOn` in the "
        "definition, and upgrade the run to it."
    )
