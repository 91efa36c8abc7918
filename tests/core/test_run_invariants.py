"""Invariants of random runs: no decision leaves anything to decide, and every run ends."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core import commands
from conductor_app.core.decide import Report, apply_report
from conductor_app.core.document.reading import read_definition
from conductor_app.core.errors import AlreadyResolved, Conflict
from tests.core.simulated_run import RunInMemory
from tests.hypothesis_profile import property_settings
from tests.random_definitions import random_definition

MAX_STEPS = 400
OUTCOMES = ["COMPLETED"] * 8 + ["FAILED", "FAILED", "TIMED_OUT", "FAILED_FOR_GOOD", "CANCELED"]


def simulate_run(seed: int, **options: bool) -> RunInMemory:
    """Run a random definition with workers that complete, fail, report twice or late, or disappear."""
    random = Random(seed)
    run = RunInMemory(read_definition(random_definition(random, **options)))
    stale: list[str] = []
    for _ in range(random.randint(0, 30)):
        if not run.snapshot.is_open:
            break
        take_random_step(run, random, stale)
    return run


def take_random_step(run: RunInMemory, random: Random, stale: list[str]) -> None:
    draw = random.random()
    reportable = [str(task.key) for task in run.snapshot.open_tasks if task.step.type in ("SIMPLE", "WAIT", "HUMAN")]
    if draw < 0.1:
        run.later(random.choice((1, 7, 30, 100)))
    elif draw < 0.15:
        run.apply(commands.pause_run)
        run.later(random.choice((0, 10)))
        if run.snapshot.is_open:
            run.apply(commands.resume_run)
    elif reportable:
        work_on_task(run, random, random.choice(reportable), stale)


def work_on_task(run: RunInMemory, random: Random, key: str, stale: list[str]) -> None:
    task = run.task(key)
    if task.attempt.status == "PENDING" and task.attempt.queue:
        run.claim(key)
    if random.random() < 0.15:
        return  # The worker does not report.
    if random.random() < 0.15 and task.attempt.is_open:
        run.report(key, "IN_PROGRESS", {"n": 1}, callback_seconds=random.choice((0, 9)))
        return
    stale.append(task.attempt.id)
    run.ends(key, random.choice(OUTCOMES))
    if run.snapshot.task_of_attempt(stale[0]) is None or not run.snapshot.task_of_attempt(stale[0]).attempt.is_open:
        with pytest.raises(AlreadyResolved):
            run.apply(apply_report(stale[0], Report("COMPLETED")))


def finish_run(run: RunInMemory) -> None:
    """Complete all tasks until the run has ended."""
    for _ in range(MAX_STEPS):
        if not run.snapshot.is_open:
            return
        open_tasks = [task for task in run.snapshot.open_tasks if task.attempt.is_open]
        keys = [str(task.key) for task in open_tasks if task.attempt.queue or task.step.type in ("WAIT", "HUMAN")]
        if keys:
            run.completes(keys[0])
        else:
            run.later(60)
    raise AssertionError(f"the run does not end: {run.statuses}")


@property_settings(60)
@given(seed=st.integers(0, 10**9))
def test_every_run_ends_and_decisions_are_idempotent(seed):
    run = simulate_run(seed)

    finish_run(run)

    assert not run.snapshot.open_tasks
    assert all(not task.attempt.is_open for task in run.snapshot.tasks.values())


@pytest.mark.parametrize("terminates", [False, True])
@property_settings(40)
@given(seed=st.integers(0, 10**9))
def test_a_run_that_did_not_complete_can_be_retried_to_its_end(terminates, seed):
    run = simulate_run(seed, terminates=terminates)
    finish_run(run)
    if run.status == "COMPLETED":
        return

    for _ in range(10):
        try:
            run.retry()
        except Conflict:
            return
        finish_run(run)
        if run.status == "COMPLETED":
            break

    assert not run.snapshot.open_tasks
