"""Change a standalone task: lock it, apply a command, and save it with what follows from its resolution.

A resolution is announced to the dependent tasks, and to the group if it was the last one.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from ... import notifications
from ...core.decide import EVENTS_OF_OUTCOMES
from ...core.errors import NotFound
from ...core.states import PENDING
from ...db.database import transaction
from ...db.statements import execute_in_transaction
from ...runs.commands.messages import deliver_after_commit
from ...runs.models import OVERDUE_TASK, Message
from ...runs.store import due_rows, outbox
from ...runs.store.due_rows import handle_each, put_off_timers
from ...runs.store.writing import StatementBatch, repeat_while_stale
from ...tasks import throughput
from ...tasks.commands.pollers import standalone_queue
from ...telemetry.log_context import log_context
from ...telemetry.metrics import ATTEMPTS_ENDED
from ...utils import clock
from .. import store
from ..core.decisions import Command, apply_command, no_command, satisfy_dependency
from ..core.snapshot import (
    Effect,
    OpenStandaloneAttempt,
    PublishResolution,
    StandaloneTask,
    TransitionStandaloneAttempt,
)
from ..store import NewPulseMessage
from .rows import PUBLISHERS, group_message, pulse_messages_of

GROUP_RESOLVED = "task-group-resolved"


def publish_group_resolved(
    writes: StatementBatch, before: StandaloneTask, effects: Iterable[Effect], now: int
) -> list[NewPulseMessage]:
    """Return the message that the group is resolved, if this task was its last one.

    If other tasks are open, a check of the group is enqueued instead, because they may be resolved concurrently.
    """
    if not _resolutions(effects):
        return []
    if before.group_has_unresolved:
        store.insert_check_message(writes, before.group_id, now)
        return []
    return _publish_resolved(writes, before.group_id, now)


def _publish_resolved(writes: StatementBatch, group_id: str, now: int) -> list[NewPulseMessage]:
    store.delete_check_messages(writes, group_id)
    group = store.load_group(group_id)
    return [group_message(group, GROUP_RESOLVED, now)] if group is not None else []


def handle_group_check(message: Message) -> None:
    """Publish that a group is resolved, if it is: its last tasks were resolved concurrently."""
    with transaction.atomic():
        if outbox.consume(message.pk) and store.is_resolved(message.to):
            writes = StatementBatch()
            store.insert_pulse_messages(writes, _publish_resolved(writes, message.to, clock.now()))
            writes.send()


def enqueue_resolution(before: StandaloneTask, effects: Iterable[Effect]) -> None:
    """Enqueue the message to the tasks that depend on a resolved task. It is delivered after the commit."""
    if before.is_awaited and (resolutions := _resolutions(effects)):
        now = clock.now()
        ids = [store.insert_resolved_message(before.id, {"reason": each.reason}, now) for each in resolutions]
        transaction.on_commit(partial(deliver_after_commit, tuple(ids)))


def _resolutions(effects: Iterable[Effect]) -> Sequence[PublishResolution]:
    return [effect for effect in effects if isinstance(effect, PublishResolution)]


def change_task(task_id: str, command: Command, *, required_id: str = "") -> StandaloneTask:
    """Change one task in one transaction, and return the task after the change.

    `required_id`: the resolved dependency that the command is about.

    Raises:
        Conflict: when the state of the task does not allow the command.
        Busy: when other processes keep changing the task.
    """
    change = partial(_decide_and_save, task_id, command, required_id)
    with log_context("change", task_id=task_id):
        return repeat_while_stale(partial(execute_in_transaction, change), task=task_id)


def _decide_and_save(task_id: str, command: Command, required_id: str) -> StandaloneTask:
    now = clock.now()
    before = store.load_for_update(task_id, required_id)
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
        *publish_group_resolved(writes, before, effects, now),
    ]
    store.save_task(writes, before, effects, after, notices, now, is_new)
    enqueue_resolution(before, effects)
    transaction.on_commit(partial(_count_decision, before, effects))
    queues = [standalone_queue(after.queue)] if after.attempt is not None and after.attempt.status == PENDING else []
    queues += [PUBLISHERS] if any(notice.due_at <= now for notice in notices) else []
    if queues:
        transaction.on_commit(partial(notifications.announce, queues))


OUTCOMES = {event: outcome for outcome, event in EVENTS_OF_OUTCOMES.items()}


def _count_decision(before: StandaloneTask, effects: Iterable[Effect]) -> None:
    """Count the attempts that a decision scheduled or ended."""
    now, standalone = clock.now(), before
    for effect in effects:
        if isinstance(effect, OpenStandaloneAttempt):
            throughput.record_scheduled(effect.attempt, now)
        elif isinstance(effect, TransitionStandaloneAttempt):
            attempt = standalone.attempts[-1]
            throughput.record_outcome(attempt, effect.event, attempt.worker, now)
            if effect.event in OUTCOMES:
                ATTEMPTS_ENDED.count(store.STANDALONE, OUTCOMES[effect.event])
        standalone = effect.after(standalone)
    throughput.write_if_due()


def wake_task(task_id: str) -> StandaloneTask:
    """Evaluate the rules of a task without a command.

    Raises:
        Busy: when other processes keep changing the task.
    """
    return change_task(task_id, no_command)


def pass_deadlines(limit: int) -> int:
    """Resolve the tasks whose deadline and grace have passed. Returns how many."""
    return handle_each(due_rows.due_standalone_tasks(clock.now(), limit), wake_task, _put_off)


def _put_off(task_id: str, error: str) -> None:
    with transaction.atomic():
        put_off_timers(OVERDUE_TASK, task_id, error, clock.now())


PAGE = 50
"""Dependent tasks that one delivery updates. The sweep continues with the others, so that no caller waits for all."""


def handle_dependency_resolved(message: Message) -> None:
    """Satisfy the dependency in one page of the tasks that wait for it."""
    completed = message.facts["reason"] == "completed"
    page = store.dependents_of(message.to, completed, PAGE)
    for task_id in page:
        try:
            change_task(task_id, satisfy_dependency(message.to), required_id=message.to)
        except NotFound:
            continue
    if len(page) == PAGE:
        outbox.update_messages([message.pk], due_at=clock.now(), tries=0)
    else:
        outbox.consume(message.pk)
