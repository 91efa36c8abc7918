"""Over random definitions and their random neighbours: after an upgrade the law holds, and every run ends."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core import commands
from conductor_app.core.document import read_definition
from conductor_app.core.errors import RequestRefused
from tests.core.simulated_run import RunInMemory
from tests.core.test_run_invariants import finish, one_step
from tests.core.test_skip_and_jump_invariants import detour
from tests.hypothesis_profile import property_settings
from tests.random_definitions import random_definition
from tests.random_versions import next_version


@property_settings(100)
@given(seed=st.integers(0, 10**9))
def test_an_upgraded_run_ends_and_decisions_are_idempotent(seed):
    live(seed)


def test_random_runs_are_upgraded():
    assert sum(live(seed) for seed in range(100)) > 40


def live(seed: int) -> int:
    """A run that is moved now and then; how often it was."""
    random, moved = Random(seed), 0
    document = random_definition(random)
    life = RunInMemory(read_definition(document))
    stale: list[str] = []
    for _ in range(random.randint(1, 25)):
        if not life.run.is_open:
            break
        chance = random.random()
        if chance < 0.15:
            document = next_version(random, document)
            try:
                life.do(commands.upgrade_run(read_definition(document), {"new2_0": {"n": 1}}))
                moved += 1
            except RequestRefused:
                document |= {"version": document["version"] + 1}
        elif chance < 0.2:
            detour(life, random)
        else:
            one_step(life, random, stale)

    finish(life)

    assert not life.run.open_tasks
    assert all(not task.attempt.is_open for task in life.run.tasks.values())
    return moved
