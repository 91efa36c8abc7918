"""Over random definitions and random workers: what was decided need not be decided again, and every run ends."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core import commands
from conductor_app.core.document import read_definition
from conductor_app.core.errors import AlreadyResolved, Conflict
from conductor_app.core.reports import Report, apply_report
from tests.core.simulated_run import RunInMemory
from tests.hypothesis_profile import property_settings
from tests.random_definitions import random_definition

MAX_STEPS = 400
OUTCOMES = ["COMPLETED"] * 8 + ["FAILED", "FAILED", "TIMED_OUT", "FAILED_FOR_GOOD", "CANCELED"]


def live(seed: int, **drawn: bool) -> RunInMemory:
    """A run with workers who answer well, badly, twice, late or not at all. Life checks the law at each decision."""
    random = Random(seed)
    life = RunInMemory(read_definition(random_definition(random, **drawn)))
    stale: list[str] = []
    for _ in range(random.randint(0, 30)):
        if not life.run.is_open:
            break
        one_step(life, random, stale)
    return life


def one_step(life: RunInMemory, random: Random, stale: list[str]) -> None:
    chance = random.random()
    reportable = [str(task.key) for task in life.run.open_tasks if task.step.type in ("SIMPLE", "WAIT", "HUMAN")]
    if chance < 0.1:
        life.later(random.choice((1, 7, 30, 100)))
    elif chance < 0.15:
        life.do(commands.pause_run)
        life.later(random.choice((0, 10)))
        if life.run.is_open:
            life.do(commands.resume_run)
    elif reportable:
        answer(life, random, random.choice(reportable), stale)


def answer(life: RunInMemory, random: Random, key: str, stale: list[str]) -> None:
    task = life.task(key)
    if task.attempt.status == "PENDING" and task.attempt.queue:
        life.claim(key)
    if random.random() < 0.15:
        return  # the worker has died
    if random.random() < 0.15 and task.attempt.is_open:
        life.report(key, "IN_PROGRESS", {"n": 1}, callback_seconds=random.choice((0, 9)))
        return
    stale.append(task.attempt.id)
    life.ends(key, random.choice(OUTCOMES))
    if life.run.task_of_attempt(stale[0]) is None or not life.run.task_of_attempt(stale[0]).attempt.is_open:
        with pytest.raises(AlreadyResolved):
            life.do(apply_report(stale[0], Report("COMPLETED")))


def finish(life: RunInMemory) -> None:
    """Workers who always do well bring it to its end."""
    for _ in range(MAX_STEPS):
        if not life.run.is_open:
            return
        open_tasks = [task for task in life.run.open_tasks if task.attempt.is_open]
        work = [str(task.key) for task in open_tasks if task.attempt.queue or task.step.type in ("WAIT", "HUMAN")]
        if work:
            life.completes(work[0])
        else:
            life.later(60)
    raise AssertionError(f"it does not end: {life.statuses}")


@property_settings(60)
@given(seed=st.integers(0, 10**9))
def test_every_run_ends_and_decisions_are_idempotent(seed):
    life = live(seed)

    finish(life)

    assert not life.run.open_tasks
    assert all(not task.attempt.is_open for task in life.run.tasks.values())


@pytest.mark.parametrize("terminates", [False, True])
@property_settings(40)
@given(seed=st.integers(0, 10**9))
def test_a_run_that_ended_badly_can_be_retried_to_its_end(terminates, seed):
    life = live(seed, terminates=terminates)
    finish(life)
    if life.status == "COMPLETED":
        return

    for _ in range(10):
        try:
            life.retry()
        except Conflict:
            return
        finish(life)
        if life.status == "COMPLETED":
            break

    assert not life.run.open_tasks
