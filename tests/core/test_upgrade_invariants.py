"""Upgrades of random runs: no decision leaves anything to decide, and every run ends."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core import commands
from conductor_app.core.document.reading import read_definition
from conductor_app.core.errors import RequestRefused
from tests.core.simulated_run import RunInMemory
from tests.core.test_run_invariants import finish_run, take_random_step
from tests.core.test_skip_and_jump_invariants import skip_or_jump
from tests.hypothesis_profile import property_settings
from tests.random_definitions import random_definition
from tests.random_versions import next_version


@property_settings(100)
@given(seed=st.integers(0, 10**9))
def test_an_upgraded_run_ends_and_decisions_are_idempotent(seed):
    simulate_upgraded_run(seed)


def test_random_runs_are_upgraded():
    assert sum(simulate_upgraded_run(seed) for seed in range(100)) > 40


def simulate_upgraded_run(seed: int) -> int:
    """Run a random definition with occasional upgrades. Return the number of upgrades."""
    random, upgrades = Random(seed), 0
    document = random_definition(random)
    run = RunInMemory(read_definition(document))
    stale: list[str] = []
    for _ in range(random.randint(1, 25)):
        if not run.snapshot.is_open:
            break
        draw = random.random()
        if draw < 0.15:
            document = next_version(random, document)
            try:
                run.apply(commands.upgrade_run(read_definition(document), {"new2_0": {"n": 1}}))
                upgrades += 1
            except RequestRefused:
                document |= {"version": document["version"] + 1}
        elif draw < 0.2:
            skip_or_jump(run, random)
        else:
            take_random_step(run, random, stale)

    finish_run(run)

    assert not run.snapshot.open_tasks
    assert all(not task.attempt.is_open for task in run.snapshot.tasks.values())
    return upgrades
