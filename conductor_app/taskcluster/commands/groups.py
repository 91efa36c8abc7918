"""Actions on many tasks of a group: a preview, and the execution of each task by its own message."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from django.db import transaction

from ... import clock
from ...core.errors import Conflict, Invalid
from ...core.snapshot import Attempt
from ...core.standalone.decide import Command
from ...core.standalone.effects import PublishMessage
from ...core.standalone.snapshot import StandaloneTask
from ...core.states import ACTIVE, ATTEMPT
from ...insight.standalone.task_groups.members import GroupMember
from ...insight.standalone.task_status import NAMES_OF_PRIORITIES
from ...models import Message
from ...store import outbox_messages, standalone_tasks
from .. import audit
from ..delivery import deliver_after_commit
from .task_actions import apply_action, parse_command

BULK_ACTION_SUBJECT = "asked"
"""The subject of the messages that apply an action to a task."""
MAX_NAMED = 5
AT_ONCE, EVERY_MS = 50, 10
"""The first AT_ONCE tasks are handled at once, the others one per EVERY_MS, so that other messages are not delayed."""


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """Result that an action would have.

    `moved`: the tasks that it would change. `still`: the number of tasks without an effect. `refused`: the number of
    tasks that refuse it. `refusals`: the first messages of these.
    """

    moved: Sequence[GroupMember]
    still: int
    refused: int
    refusals: Sequence[str]


def preview_bulk_action(members: Iterable[GroupMember], verb: str, priority: int = 0) -> BulkPreview:
    """Return the result that an action would have. Nothing is saved.

    Raises:
        Invalid: when the action is unknown.
    """
    command, now = parse_command(verb, priority), clock.now()
    moved, refusals, still = [], [], 0
    for member in members:
        try:
            if _has_effect(command, _partial_snapshot(member), now):
                moved.append(member)
            else:
                still += 1
        except Conflict as refused:
            refusals.append(refused.message)
    return BulkPreview(moved, still, len(refusals), refusals[:MAX_NAMED])


def _has_effect(command: Command, standalone: StandaloneTask, now: int) -> bool:
    """Return True if the command changes the task. Repeating a Pulse message is no change."""
    return any(not isinstance(effect, PublishMessage) for effect in command(standalone, now))


def _partial_snapshot(member: GroupMember) -> StandaloneTask:
    """Return a snapshot with the parts of a task that operators' commands read."""
    attempts = tuple(
        Attempt(
            id="", number=each.number, seq=each.number, status=each.status, reason=each.reason,
            scheduled_at=each.scheduled_at, visible_at=0, pending_since=0,
        )
        for each in member.attempts
    )  # fmt: skip
    return StandaloneTask(
        id=member.id, group_id="", queue=member.queue, deadline_at=member.deadline_at, expires_at=0, created_at=0,
        status=ACTIVE if member.state in ATTEMPT.open else member.state, priority=member.priority,
        ever_resolved=member.ever_resolved, attempts=attempts,
    )  # fmt: skip


def request_bulk_action(
    group_id: str, members: Sequence[GroupMember], verb: str, by: str, reason: str = "", priority: int = 0
) -> int:
    """Enqueue an action for the tasks that it would change. Returns their number.

    Raises:
        Invalid: when the action is unknown, or would change none of the tasks.
    """
    wanted = preview_bulk_action(members, verb, priority).moved
    if not wanted:
        raise Invalid("The action would change none of these tasks.")
    enqueue_bulk_action(group_id, [each.id for each in wanted], verb, by, reason, priority)
    return len(wanted)


def enqueue_bulk_action(
    group_id: str, task_ids: Sequence[str], verb: str, by: str, reason: str = "", priority: int = 0
) -> None:
    """Enqueue an action for tasks, in this order. The first AT_ONCE are handled after the commit."""
    now, facts = clock.now(), {"verb": verb, "by": by, "reason": reason, "priority": priority}
    messages = [
        Message(
            to=id,
            subject=BULK_ACTION_SUBJECT,
            facts=facts,
            sent_at=now,
            due_at=now + max(place - AT_ONCE, 0) * EVERY_MS,
        )
        for place, id in enumerate(task_ids)
    ]
    with transaction.atomic():
        sent = outbox_messages.send_all(messages)
        record_bulk_action(group_id, task_ids, verb, by, reason, priority)
        transaction.on_commit(partial(deliver_after_commit, tuple(message.pk for message in sent[:AT_ONCE])))


def record_bulk_action(
    group_id: str, task_ids: Sequence[str], verb: str, by: str, reason: str = "", priority: int = 0
) -> None:
    """Write an audit entry for an action on many tasks of a group."""
    facts = {"tasks": len(task_ids), **({"priority": NAMES_OF_PRIORITIES[priority]} if priority else {})}
    audit.record("task_group", group_id, verb, by, reason=reason, facts=facts)


def handle_bulk_action(message: Message) -> None:
    """Apply the action of a message to its task, once.

    Raises:
        NotFound: when the task was deleted.
        Conflict: when the state of the task does not allow the action any more.
    """
    facts = message.facts
    with transaction.atomic():
        # Lock the task before its message, in the same order as the deletion of a task.
        standalone_tasks.lock_row(message.to)
        if outbox_messages.consume(message.pk):
            apply_action(
                facts["verb"], message.to, facts["by"], facts["reason"], facts["priority"], asked_at=message.sent_at
            )
