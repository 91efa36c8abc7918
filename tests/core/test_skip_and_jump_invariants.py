"""Over random definitions, workers and operators: after skips and jumps the law holds, and every run ends."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core import commands
from conductor_app.core.document import read_definition
from conductor_app.core.errors import RequestRefused
from tests.core.simulated_run import RunInMemory
from tests.core.test_run_invariants import finish, one_step
from tests.hypothesis_profile import property_settings
from tests.random_definitions import random_definition


def detour(life: RunInMemory, random: Random) -> bool:
    """The operator leads the run off its way, if that can be done there; whether it was."""
    ref = random.choice(sorted(life.run.definition.steps))
    if random.random() < 0.3:
        ref = f"{ref}__{random.randint(1, 3)}"
    command = commands.skip_step(ref) if random.random() < 0.5 else commands.jump_to_step(ref, {"given": 1})
    try:
        life.do(command)
    except RequestRefused:
        return False
    return True


def test_random_runs_contain_skips_and_jumps():
    taken = 0
    for seed in range(60):
        random = Random(seed)
        life = RunInMemory(read_definition(random_definition(random)))
        taken += sum(detour(life, random) for _ in range(5) if life.run.is_open)

    assert taken > 60


@property_settings(80)
@given(seed=st.integers(0, 10**9))
def test_a_run_with_skips_and_jumps_ends_and_decisions_are_idempotent(seed):
    random = Random(seed)
    life = RunInMemory(read_definition(random_definition(random)))
    stale: list[str] = []
    for _ in range(random.randint(1, 30)):
        if not life.run.is_open:
            break
        if random.random() < 0.2:
            detour(life, random)
        else:
            one_step(life, random, stale)

    finish(life)

    assert not life.run.open_tasks
    assert all(not task.attempt.is_open for task in life.run.tasks.values())
