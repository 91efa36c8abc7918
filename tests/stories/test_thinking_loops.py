"""Loops that need no worker: they cost what they do, and end."""

from tests.builders import loop, noop
from tests.story import Story


def test_a_loop_of_many_iterations_without_workers_ends(clock):
    story = Story(clock, loop("l", noop("n"), loopCondition="$.l.iteration < 60"))

    assert story.status == "COMPLETED"
    assert [ref for ref in story.statuses if ref.startswith("n__")] == [f"n__{turn}" for turn in range(1, 61)]
