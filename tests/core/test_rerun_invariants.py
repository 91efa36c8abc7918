"""Reruns of random runs: each one ends again, and no task is repeated or left out."""

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from conductor_app.core import commands
from conductor_app.core.commands.reopen import Downstream, superseded_keys, terminate_tasks
from conductor_app.core.definition import Key, Step
from conductor_app.core.snapshot import Run
from tests.core.simulated_run import RunInMemory
from tests.core.test_run_invariants import finish_run, simulate_run
from tests.hypothesis_profile import property_settings

SEEDS = st.integers(0, 10**9)
SIXTY_EXAMPLES = property_settings(60)


def simulate_ended_run(seed: int) -> RunInMemory:
    run = simulate_run(seed, terminates=seed % 3 == 0)
    finish_run(run)
    return run


def assert_valid(run: RunInMemory) -> None:
    """Assert the invariants of the tasks of every run."""
    seqs = [task.seq for task in run.snapshot.tasks.values()]
    assert len(set(seqs)) == len(seqs)
    assert all(task.is_open for task in run.snapshot.tasks.values() if task.attempt.is_open)
    assert all(task.attempt.seq < run.snapshot.next_seq for task in run.snapshot.tasks.values())


@SIXTY_EXAMPLES
@given(seed=SEEDS, random=st.randoms(use_true_random=False))
@example(679, Random(18))  # A step of the rerun terminates the run.
def test_a_rerun_from_any_task_ends(seed, random: Random):
    run = simulate_ended_run(seed)
    for _ in range(random.randint(1, 3)):
        keys = sorted(run.snapshot.tasks)
        key = random.choice(keys) if keys else None
        before = run.snapshot

        run.apply(commands.Rerun(key, task_input=random.choice((None, None, {"case": "a"}))))

        assert_valid(run)
        if key is not None and not terminate_tasks(before):
            assert independent_attempts(before, key) <= {task.attempt.id for task in run.snapshot.tasks.values()}
        finish_run(run)
        assert_valid(run)
        assert not run.snapshot.open_tasks


def independent_attempts(run: Run, key: Key) -> set[str]:
    """Return the attempts that a rerun from the task must not change: those of tasks that do not follow it."""
    failed = (task for task in run.tasks.values() if not task.succeeded)
    # A retried failure also repeats the last tasks of its step.
    superseded = Downstream(run, key).gone.union(*(superseded_keys(run, task) for task in failed))
    successful = (task for task in run.tasks.values() if task.succeeded and task.key not in superseded)
    return {
        task.attempt.id
        for task in successful
        if not any(has_keep_last_n(run.step(ref, task)) for ref in task.step.loops)
    }


def has_keep_last_n(loop: Step | None) -> bool:
    """Return whether the loop deletes its older iterations, which can happen in the same decision."""
    return loop is not None and "keepLastN" in loop.inputs


@SIXTY_EXAMPLES
@given(seed=SEEDS)
def test_a_run_is_rerun_and_restarted_from_its_start(seed):
    run = simulate_ended_run(seed)

    for command in (commands.Rerun(), commands.restart_run()):
        run.apply(command)
        assert_valid(run)
        finish_run(run)
        assert not run.snapshot.open_tasks


@SIXTY_EXAMPLES
@given(seed=SEEDS)
def test_a_rerun_of_a_completed_run_completes(seed):
    random = Random(seed)
    run = simulate_ended_run(seed)
    if run.status != "COMPLETED" or not run.snapshot.tasks or seed % 3 == 0:
        return
    keys = sorted(run.snapshot.tasks)

    run.apply(commands.Rerun(random.choice(keys)))
    finish_run(run)

    assert run.status == "COMPLETED"
