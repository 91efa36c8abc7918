"""Skips and jumps in random runs: no decision leaves anything to decide, and every run ends."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core import commands
from conductor_app.core.document.reading import read_definition
from conductor_app.core.errors import RequestRefused
from tests.core.simulated_run import RunInMemory
from tests.core.test_run_invariants import finish_run, take_random_step
from tests.hypothesis_profile import property_settings
from tests.random_definitions import random_definition


def skip_or_jump(run: RunInMemory, random: Random) -> bool:
    """Skip or jump to a random step. Return whether the run accepted the command."""
    ref = random.choice(sorted(run.snapshot.definition.steps))
    if random.random() < 0.3:
        ref = f"{ref}__{random.randint(1, 3)}"
    command = commands.skip_step(ref) if random.random() < 0.5 else commands.jump_to_step(ref, {"given": 1})
    try:
        run.apply(command)
    except RequestRefused:
        return False
    return True


def test_random_runs_contain_skips_and_jumps():
    accepted = 0
    for seed in range(60):
        random = Random(seed)
        run = RunInMemory(read_definition(random_definition(random)))
        accepted += sum(skip_or_jump(run, random) for _ in range(5) if run.snapshot.is_open)

    assert accepted > 60


@property_settings(80)
@given(seed=st.integers(0, 10**9))
def test_a_run_with_skips_and_jumps_ends_and_decisions_are_idempotent(seed):
    random = Random(seed)
    run = RunInMemory(read_definition(random_definition(random)))
    stale: list[str] = []
    for _ in range(random.randint(1, 30)):
        if not run.snapshot.is_open:
            break
        if random.random() < 0.2:
            skip_or_jump(run, random)
        else:
            take_random_step(run, random, stale)

    finish_run(run)

    assert not run.snapshot.open_tasks
    assert all(not task.attempt.is_open for task in run.snapshot.tasks.values())
