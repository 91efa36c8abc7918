"""Over random runs: whatever task a run goes on from, it ends again, and nothing is done twice or forgotten."""

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from conductor_app.core import commands
from conductor_app.core.commands.downstream import Downstream
from conductor_app.core.commands.reopen import superseded_keys, terminate_tasks
from conductor_app.core.definition import Key, Step
from conductor_app.core.snapshot import Run
from tests.core.simulated_run import RunInMemory
from tests.core.test_run_invariants import finish, live
from tests.hypothesis_profile import property_settings

SEEDS = st.integers(0, 10**9)
OFTEN = property_settings(60)


def ended(seed: int) -> RunInMemory:
    life = live(seed, terminates=seed % 3 == 0)
    finish(life)
    return life


def holds(life: RunInMemory) -> None:
    """What must be true of the tasks of every run."""
    seqs = [task.seq for task in life.run.tasks.values()]
    assert len(set(seqs)) == len(seqs)
    assert all(task.is_open for task in life.run.tasks.values() if task.attempt.is_open)
    assert all(task.attempt.seq < life.run.next_seq for task in life.run.tasks.values())


@OFTEN
@given(seed=SEEDS, chosen=st.randoms(use_true_random=False))
@example(679, Random(18))  # one of the steps that are entered again ends the run
def test_a_rerun_from_any_task_ends(seed, chosen: Random):
    life = ended(seed)
    for _ in range(chosen.randint(1, 3)):
        keys = sorted(life.run.tasks)
        key = chosen.choice(keys) if keys else None
        before = life.run

        life.do(commands.Rerun(key, task_input=chosen.choice((None, None, {"case": "a"}))))

        holds(life)
        if key is not None and not terminate_tasks(before):
            assert spared(before, key) <= {task.attempt.id for task in life.run.tasks.values()}
        finish(life)
        holds(life)
        assert not life.run.open_tasks


def spared(run: Run, key: Key) -> set[str]:
    """The attempts that have nothing to do with what comes after the task: they keep their results."""
    failed = (task for task in run.tasks.values() if not task.succeeded)
    # What a step did last, after a failure that is tried again, is done anew.
    gone = Downstream(run, key).gone.union(*(superseded_keys(run, task) for task in failed))
    well = (task for task in run.tasks.values() if task.succeeded and task.key not in gone)
    return {task.attempt.id for task in well if not any(keeps_few(run.step(ref, task)) for ref in task.step.loops)}


def keeps_few(loop: Step | None) -> bool:
    """Whether the loop forgets its older turns, which it may do in the same moment."""
    return loop is not None and "keepLastN" in loop.inputs


@OFTEN
@given(seed=SEEDS)
def test_a_run_is_rerun_and_restarted_from_its_start(seed):
    life = ended(seed)

    for command in (commands.Rerun(), commands.restart_run()):
        life.do(command)
        holds(life)
        finish(life)
        assert not life.run.open_tasks


@OFTEN
@given(seed=SEEDS)
def test_a_rerun_is_as_good_as_a_first_run(seed):
    """A completed run that is rerun from its first task, by workers who do well, completes with the same tasks."""
    random = Random(seed)
    life = ended(seed)
    if life.status != "COMPLETED" or not life.run.tasks or seed % 3 == 0:
        return
    keys = sorted(life.run.tasks)

    life.do(commands.Rerun(random.choice(keys)))
    finish(life)

    assert life.status == "COMPLETED"
