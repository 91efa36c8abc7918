"""EXCLUSIVE_JOIN: goes on with the one branch that was taken (execution §8.8)."""

from tests.builders import exclusive_join, fork, noop, plan, step, switch
from tests.core.simulated_run import RunInMemory


def life(way: str) -> RunInMemory:
    chosen = switch("way", {"x": [step("a", permissive=True)], "y": [step("b")]}, [step("d")])
    return RunInMemory(plan(chosen, exclusive_join("either", ["a", "b"], default=["d"]), step("c")), {"way": way})


def test_its_output_is_that_of_the_selected_branch():
    ended = life("y").completes("b", n=2)

    assert ended.task("either").attempt.output == {"n": 2}
    assert ended.statuses["c"] == "SCHEDULED"


def test_it_falls_back_to_its_default_tasks():
    assert life("z").completes("d", n=3).task("either").attempt.output == {"n": 3}


def test_it_fails_as_the_branch_did():
    ended = life("x").fails("a", "no luck")

    assert (ended.statuses["either"], ended.task("either").attempt.reason) == ("FAILED", "no luck")
    assert ended.status == "FAILED"


def test_it_waits_while_the_branch_is_open():
    waiting = RunInMemory(plan(fork([step("a")], [noop("b"), exclusive_join("either", ["a"])], on=["either"])))
    assert waiting.statuses["either"] == "IN_PROGRESS"

    assert waiting.completes("a", n=1).status == "COMPLETED"
