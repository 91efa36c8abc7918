"""JOIN and FORK_JOIN: the matrix of execution §12, item 7."""

import pytest

from tests.builders import fork, human, join, loop, noop, plan, policy, set_variable, step, switch
from tests.core.simulated_run import RunInMemory

OPTIONAL, PERMISSIVE = {"optional": True}, {"permissive": True}


def two_branches(**fields) -> RunInMemory:
    return RunInMemory(plan(fork([step("a", **fields)], [step("b")]), step("c")))


def test_a_fork_enters_every_branch_and_its_join():
    life = two_branches()

    assert life.statuses == {"fork_join": "COMPLETED", "a": "SCHEDULED", "b": "SCHEDULED", "join": "IN_PROGRESS"}


def test_a_join_waits_for_its_slowest_branch():
    life = two_branches().completes("a", n=1)
    assert life.statuses["join"] == "IN_PROGRESS"

    life.completes("b", n=2)

    assert life.statuses["join"] == "COMPLETED"
    assert life.statuses["c"] == "SCHEDULED"
    assert life.task("join").attempt.output == {"a": {"n": 1}, "b": {"n": 2}}


def test_a_join_leaves_out_branches_without_output():
    life = two_branches().completes("a", n=1).completes("b")

    assert life.task("join").attempt.output == {"a": {"n": 1}}


def test_a_join_completes_with_errors_where_an_optional_branch_did():
    life = two_branches(**OPTIONAL).fails("a").completes("b")

    assert life.statuses["join"] == "COMPLETED_WITH_ERRORS"
    assert life.task("join").attempt.reason == f"a/{life.task('a').attempt.id}"
    assert life.completes("c").status == "COMPLETED"


def test_a_permissive_branch_fails_the_join_after_all_branches_have_ended():
    life = two_branches(**PERMISSIVE).fails("a", "no funds")
    assert (life.status, life.statuses["join"]) == ("RUNNING", "IN_PROGRESS")

    life.completes("b")

    assert (life.status, life.statuses["join"]) == ("FAILED", "FAILED")
    assert life.task("join").attempt.reason == "no funds"


def test_a_join_of_canceled_tasks_is_canceled():
    life = two_branches(**PERMISSIVE).ends("a", "CANCELED").completes("b")

    assert (life.status, life.statuses["join"]) == ("TERMINATED", "CANCELED")


def test_a_plain_failure_in_one_branch_cancels_the_others():
    life = two_branches().fails("a", "no funds")

    assert life.status == "FAILED"
    assert life.statuses == {"fork_join": "COMPLETED", "a": "FAILED", "b": "CANCELED", "join": "CANCELED"}


def test_a_join_ignores_a_failure_that_is_retried():
    life = two_branches(policy=policy(retries=1)).completes("b").fails("a")
    assert life.statuses["join"] == "IN_PROGRESS"

    assert life.completes("a").statuses["join"] == "COMPLETED"


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([join("j", []), step("c")], id="a join by itself"),
        pytest.param([*fork(on=[], join="j"), step("c")], id="a fork without branches"),
        pytest.param([*fork([], [noop("a")], join="j"), step("c")], id="a fork with an empty branch"),
        pytest.param([*fork([noop("a")], [set_variable("b", n=1)], join="j"), step("c")], id="branches over at once"),
    ],
)
def test_a_join_without_tasks_completes_immediately(steps):
    life = RunInMemory(plan(*steps))

    assert life.statuses["j"] == "COMPLETED"
    assert life.statuses["c"] == "SCHEDULED"


def test_a_join_waits_only_for_the_tasks_that_it_names():
    life = RunInMemory(plan(fork([step("a")], [step("b")], on=["a"]), step("c"))).completes("a")

    assert life.statuses["c"] == "SCHEDULED"
    assert life.completes("c").status == "RUNNING"
    assert life.completes("b").status == "COMPLETED"


def test_a_join_in_a_loop_joins_the_tasks_of_its_iteration():
    life = RunInMemory(plan(loop("l", *fork([step("a")], [step("b")]), times=2)))

    life.completes("a__1", n=1).completes("b__1", n=2)

    assert life.task("join__1").attempt.output == {"a__1": {"n": 1}, "b__1": {"n": 2}}
    assert life.statuses["join__2"] == "IN_PROGRESS"
    assert life.completes("a__2", "b__2").status == "COMPLETED"


def test_forks_may_be_nested():
    inner = fork([step("a")], [step("b")], join="inner")
    life = RunInMemory(plan(fork(inner, [step("c")], join="outer"), step("d")))

    life.completes("a", "c")
    assert life.statuses["outer"] == "IN_PROGRESS"

    assert life.completes("b").statuses["d"] == "SCHEDULED"


def test_a_branch_may_end_in_a_loop():
    life = RunInMemory(plan(fork([loop("l", step("a"), times=2)], [step("b")]), step("c"))).completes("b", "a__1")
    assert life.statuses["join"] == "IN_PROGRESS"

    assert life.completes("a__2").statuses["c"] == "SCHEDULED"


def test_a_join_waits_for_the_case_of_a_switch_at_the_end_of_a_branch():
    life = RunInMemory(plan(fork([switch("way", {"x": [human("a")]})], [noop("b")], on=["a"]), step("c")), {"way": "x"})
    assert life.statuses["join"] == "IN_PROGRESS"

    assert life.completes("a").statuses["c"] == "SCHEDULED"


def test_a_join_that_can_never_complete_fails_with_a_reason():
    life = RunInMemory(
        plan(fork([switch("way", {"x": [step("a")]}, [step("d")])], [step("b")], on=["a", "b"])), {"way": "y"}
    )
    life.completes("b")
    assert life.statuses["join"] == "IN_PROGRESS"

    life.completes("d")

    assert (life.status, life.statuses["join"]) == ("FAILED", "FAILED_WITH_TERMINAL_ERROR")
    assert life.task("join").attempt.reason == "join cannot complete: no open task leads to a, b."
