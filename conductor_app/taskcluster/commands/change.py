"""Change a standalone task: lock it, apply a command, decide what follows, and save it."""

from collections.abc import Sequence
from functools import partial

from django.db import transaction

from ... import clock, notifications
from ...core.standalone.decide import Command, apply_command, no_command
from ...core.standalone.effects import Effect
from ...core.standalone.snapshot import StandaloneTask
from ...core.states import PENDING
from ...store import standalone_tasks
from ...store.statement_batch import StatementBatch
from ...telemetry.log_context import log_context
from ..queues.queue_lookups import standalone_queue
from ..runs.counting import count_standalone
from ..stale_rows import repeat_while_stale
from . import resolution
from .pulse_messages import PUBLISHERS, pulse_messages_of


def change_task(task_id: str, command: Command, *, required_id: str = "") -> StandaloneTask:
    """Change one task in one transaction, and return the task after the change.

    `required_id`: the resolved dependency that the command is about.

    Raises:
        NotFound: when there is no such task.
        Conflict: when the state of the task does not allow the command.
        Busy: when other processes keep changing the task.
    """
    with log_context("change", task_id=task_id):
        return repeat_while_stale(partial(_try_once, task_id, command, required_id), task=task_id)


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
    """Save a decision together with the statements in `writes`. Notifications and messages are sent after the commit.

    `is_new`: `writes` insert the task.
    """
    notices = [
        *pulse_messages_of(before, effects, now),
        *resolution.publish_group_resolved(writes, before, effects, now),
    ]
    standalone_tasks.save_task(writes, before, effects, after, notices, now, is_new)
    resolution.enqueue_resolution(before, effects)
    transaction.on_commit(partial(count_standalone, before, effects))
    queues = [standalone_queue(after.queue)] if after.attempt is not None and after.attempt.status == PENDING else []
    queues += [PUBLISHERS] if any(notice.due_at <= now for notice in notices) else []
    if queues:
        transaction.on_commit(partial(notifications.announce, queues))


def wake_task(task_id: str) -> StandaloneTask:
    """Evaluate the rules of a task without a command.

    Raises:
        NotFound: when there is no such task.
        Busy: when other processes keep changing the task.
    """
    return change_task(task_id, no_command)
