"""Try what failed or was canceled again, from where a run stands (execution §7.3)."""

from collections.abc import Iterable, Iterator, Sequence

from ..definition import Key
from ..effects import Effect, MoveRun, OpenAttempt, ResolveTask
from ..errors import Conflict, NotAllowedInState
from ..knowledge import Knowledge
from ..rules.retry import next_attempt
from ..scopes import is_handled
from ..snapshot import Run, Task
from ..states import RUN, TIMED_OUT
from ..steps import kind_of
from .reopening import (
    ended_badly,
    fresh_facts,
    hears_outside,
    is_reopened,
    need_whole,
    origin,
    reopened,
    seq,
    superseded,
    taken_back,
    terminations,
    told_parent,
)
from .trail import Trail


def retry(run: Run, know: Knowledge, now: int) -> Iterator[Effect]:
    """Try what failed or was canceled again, from where the run stands."""
    if run.is_open:
        raise NotAllowedInState(f"Workflow {run.id} is {run.status}: only one that has ended badly can be retried.")
    RUN.after(run.status, "retry")
    need_whole(run)
    failed, ends = ended_badly(run), terminations(run)
    if not ends and run.status != TIMED_OUT and all(is_handled(run, task) for task in failed):
        raise Conflict(f"There are no retryable tasks in workflow {run.id}; restart it, or rerun it from a task.")
    trails = [Trail(run, _cause(run, end).key) for end in ends]
    yield MoveRun("retry", now, fresh_facts(now))
    yield from tried_again(run, failed, trails, know, now)
    yield from told_parent(run, "retried")


def _cause(run: Run, end: Task) -> Task:
    """What has to be tried again lest this TERMINATE ends the run again at once."""
    cause = origin(run, end)
    if not hears_outside(cause):
        raise Conflict(
            f"Workflow {run.id} would end again at once: nothing that can be tried again leads to {end.key}. "
            "Restart it, or rerun it with another input."
        )
    return cause


def tried_again(
    run: Run, failed: Iterable[Task], trails: Sequence[Trail], know: Knowledge, now: int, in_place: Sequence[Key] = ()
) -> Iterator[Effect]:
    """A further attempt at each, or the same one again for those `in_place`. At the start of a trail the outcome is
    asked for anew: what came of it is taken back.
    """
    gone = {key for trail in trails for key in trail.gone if key != trail.start}
    waiting = {key: turn for trail in trails for key, turn in trail.waiting.items()}
    left: dict[Key, Task] = {}
    for task in (*failed, *(run.tasks[trail.start] for trail in trails)):
        if task.key in gone or is_handled(run, task, waiting):
            continue
        left[task.key] = task
        if task.key not in waiting and (task.key in in_place or is_reopened(task)):
            waiting[task.key] = kind_of(task.step.type).failed_turn(task)
            gone |= superseded(run, task)
    waiting = {key: turn for key, turn in waiting.items() if key not in gone}
    yield from taken_back(run, gone)
    yield from reopened(run, waiting, know, now)
    for task in sorted((task for key, task in left.items() if key not in waiting and key not in gone), key=seq):
        yield ResolveTask(task.key, "reopen")
        yield OpenAttempt(task.key, next_attempt(task, know, now, delay=0, first_at=now))
