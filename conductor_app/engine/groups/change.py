"""change(): lock one stand-alone task, hear the command, let the core decide, write it down; as is done of runs."""

from collections.abc import Sequence
from functools import partial

from django.db import transaction

from ... import clock, wakeups
from ...core.errors import Busy
from ...core.standalone.decide import Command, decided, nothing
from ...core.standalone.effects import Effect
from ...core.standalone.snapshot import StandaloneTask
from ...core.states import PENDING
from ...store import standalone_tasks
from ...store.statement_batch import Stale, Writes
from ...telemetry.log_context import doing
from ..counting import count_standalone
from . import resolving
from .notices import PUBLISHERS, notices_of

TRIES = 5
"""How often a change is decided anew because others moved its rows in between, before it answers Busy."""


def change(task_id: str, command: Command, *, required_id: str = "") -> StandaloneTask:
    """Change one task in one transaction; the task after it. Raises NotFound, Conflict and Busy.

    `required_id`: the task that this one depends on, and that the command is the news of.
    """
    with doing("change", task_id=task_id):
        for _ in range(TRIES):
            try:
                return _once(task_id, command, required_id)
            except Stale:
                continue
    raise Busy(task=task_id)


def _once(task_id: str, command: Command, required_id: str) -> StandaloneTask:
    with transaction.atomic():
        now = clock.now()
        before = standalone_tasks.lock(task_id, required_id)
        effects, after = decided(before, command, now)
        if effects:
            write(Writes(), before, effects, after, now)
    return after


def write(
    writes: Writes,
    before: StandaloneTask,
    effects: Sequence[Effect],
    after: StandaloneTask,
    now: int,
    is_new: bool = False,
) -> None:
    """Save a decision, after the `writes` that go with it; what others should hear goes out after the commit.

    `is_new`: the task itself is among those writes.
    """
    notices = [*notices_of(before, effects, now), *resolving.told_of_group(writes, before, effects, now)]
    standalone_tasks.save(writes, before, effects, after, notices, now, is_new)
    resolving.pass_on(before, effects)
    transaction.on_commit(partial(count_standalone, before, effects))
    queues = [after.queue] if after.attempt is not None and after.attempt.status == PENDING else []
    queues += [PUBLISHERS] if any(notice.due_at <= now for notice in notices) else []
    if queues:
        transaction.on_commit(partial(wakeups.announce, queues))


def wake(task_id: str) -> StandaloneTask:
    """Let the core look at the task."""
    return change(task_id, nothing)
