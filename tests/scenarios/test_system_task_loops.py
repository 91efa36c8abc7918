"""Loops of system tasks, which need no worker."""

from tests.builders import loop, noop
from tests.scenario import Scenario


def test_a_loop_of_many_iterations_without_workers_ends(clock):
    scenario = Scenario(clock, loop("l", noop("n"), loopCondition="$.l.iteration < 60"))

    assert scenario.status == "COMPLETED"
    assert [ref for ref in scenario.statuses if ref.startswith("n__")] == [f"n__{turn}" for turn in range(1, 61)]


def test_a_sweep_continues_a_loop_that_is_too_long_for_one_decision(clock):
    scenario = Scenario(clock, loop("l", noop("n"), loopCondition="$.l.iteration < 600"))
    assert scenario.status == "RUNNING"

    scenario.later(1)

    assert scenario.status == "COMPLETED"
    assert scenario.task("l").output["iteration"] == 600
