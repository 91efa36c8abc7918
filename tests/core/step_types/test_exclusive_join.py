"""EXCLUSIVE_JOIN: waiting for the one branch that was taken (execution §8.8)."""

from tests.builders import exclusive_join, fork, noop, plan, step, switch
from tests.core.simulated_run import RunInMemory


def start_run(way: str) -> RunInMemory:
    chosen = switch("way", {"x": [step("a", permissive=True)], "y": [step("b")]}, [step("d")])
    return RunInMemory(plan(chosen, exclusive_join("either", ["a", "b"], default=["d"]), step("c")), {"way": way})


def test_its_output_is_that_of_the_selected_branch():
    run = start_run("y").completes("b", n=2)

    assert run.task("either").attempt.output == {"n": 2}
    assert run.statuses["c"] == "SCHEDULED"


def test_it_falls_back_to_its_default_tasks():
    assert start_run("z").completes("d", n=3).task("either").attempt.output == {"n": 3}


def test_it_fails_as_the_branch_did():
    run = start_run("x").fails("a", "no luck")

    assert (run.statuses["either"], run.task("either").attempt.reason) == ("FAILED", "no luck")
    assert run.status == "FAILED"


def test_it_waits_while_the_branch_is_open():
    run = RunInMemory(plan(fork([step("a")], [noop("b"), exclusive_join("either", ["a"])], on=["either"])))
    assert run.statuses["either"] == "IN_PROGRESS"

    assert run.completes("a", n=1).status == "COMPLETED"
