"""change(): lock one stand-alone task, hear the command, let the core decide, write it down; as is done of runs."""

from collections.abc import Sequence
from functools import partial

from django.db import transaction

from ... import clock, notifications
from ...core.errors import Busy
from ...core.standalone.decide import Command, apply_command, no_command
from ...core.standalone.effects import Effect
from ...core.standalone.snapshot import StandaloneTask
from ...core.states import PENDING
from ...store import standalone_tasks
from ...store.statement_batch import StaleRow, StatementBatch
from ...telemetry.log_context import log_context
from ..counting import count_standalone
from . import resolution
from .pulse_messages import PUBLISHERS, pulse_messages_of

TRIES = 5
"""How often a change is decided anew because others moved its rows in between, before it answers Busy."""


def change_task(task_id: str, command: Command, *, required_id: str = "") -> StandaloneTask:
    """Change one task in one transaction; the task after it. Raises NotFound, Conflict and Busy.

    `required_id`: the task that this one depends on, and that the command is the news of.
    """
    with log_context("change", task_id=task_id):
        for _ in range(TRIES):
            try:
                return _try_once(task_id, command, required_id)
            except StaleRow:
                continue
    raise Busy(task=task_id)


def _try_once(task_id: str, command: Command, required_id: str) -> StandaloneTask:
    with transaction.atomic():
        now = clock.now()
        before = standalone_tasks.load_for_update(task_id, required_id)
        effects, after = apply_command(before, command, now)
        if effects:
            save_decision(StatementBatch(), before, effects, after, now)
    return after


def save_decision(
    writes: StatementBatch,
    before: StandaloneTask,
    effects: Sequence[Effect],
    after: StandaloneTask,
    now: int,
    is_new: bool = False,
) -> None:
    """Save a decision, after the `writes` that go with it; what others should hear goes out after the commit.

    `is_new`: the task itself is among those writes.
    """
    notices = [
        *pulse_messages_of(before, effects, now),
        *resolution.publish_group_resolved(writes, before, effects, now),
    ]
    standalone_tasks.save_task(writes, before, effects, after, notices, now, is_new)
    resolution.enqueue_resolution(before, effects)
    transaction.on_commit(partial(count_standalone, before, effects))
    queues = [after.queue] if after.attempt is not None and after.attempt.status == PENDING else []
    queues += [PUBLISHERS] if any(notice.due_at <= now for notice in notices) else []
    if queues:
        transaction.on_commit(partial(notifications.announce, queues))


def wake_task(task_id: str) -> StandaloneTask:
    """Let the core look at the task."""
    return change_task(task_id, no_command)
