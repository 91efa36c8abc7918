"""Commands on task groups: actions on many tasks, their approval, and watches.

A few tasks are changed within the request, many by one message each. On the admin pages, an action on at least
`conf.bulk_approval_from` tasks needs the approval of a second person; calls of API clients are authorized by their
scopes alone. A watch sends one email, through the outbox, when a group is resolved or has its first failure.
"""

import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import QuerySet

from ...access import audit
from ...core.errors import Conflict, Invalid, NotFound
from ...core.snapshot import Attempt
from ...core.states import ACTIVE, ATTEMPT
from ...runs.commands.messages import deliver_after_commit
from ...runs.models import ALERT, PUBLISH, Message
from ...runs.store import outbox
from ...runs.store.due_rows import handle_each
from ...settings import conf
from ...utils import clock
from .. import store
from ..core import decisions
from ..core.decisions import Command
from ..core.snapshot import Effect, PublishMessage, StandaloneTask
from ..models import GroupWatch, PendingApproval, TaskGroup
from ..models import StandaloneTask as StandaloneTaskRow
from ..queries.groups import GroupMember
from ..queries.tasks import NAMES_OF_PRIORITIES
from .change import change_task
from .rows import find_group, publish_group_message
from .tasks import PRIORITIZE, apply_action, parse_command

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
        sent = outbox.send_all(messages)
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
        store.lock_row(message.to)
        if outbox.consume(message.pk):
            apply_action(
                facts["verb"], message.to, facts["by"], facts["reason"], facts["priority"], asked_at=message.sent_at
            )


def seal_group(group_id: str, by: str, reason: str = "") -> TaskGroup:
    """Seal a group: it accepts no more tasks. A repeated seal keeps the first time.

    Raises:
        NotFound: when there is no such group.
    """
    with transaction.atomic():
        now = clock.now()
        TaskGroup.objects.filter(pk=group_id, sealed_at=None).update(sealed_at=now)
        group = find_group(group_id)
        publish_group_message(group, "task-group-sealed", now)
        audit.record("task_group", group_id, "seal", by, reason=reason)
    return group


WAITED_FOR = 50
"""The maximum number of tasks that are changed within the request, which takes about 0.2 seconds."""


def cancel_group(id: str, by: str) -> list[str]:
    """Cancel the open tasks of a sealed group. Returns their ids.

    Raises:
        NotFound: when there is no such group.
        Conflict: when the group is not sealed.
    """
    if find_group(id).sealed_at is None:
        raise Conflict(f"Task group {id} is not sealed. Seal it first.")
    now = clock.now()
    is_open = StandaloneTaskRow.objects.filter(
        group_id=id, deadline_at__gte=now, task__status__in=("BLOCKED", "ACTIVE")
    )
    return _apply_to_all(id, is_open, decisions.cancel_if_open, "cancel", by)


def prioritize_group(id: str, priority: int, by: str) -> tuple[TaskGroup, list[str]]:
    """Change the priority of the tasks of a group that were never resolved. Returns the group and their ids.

    Raises:
        NotFound: when there is no such group.
    """
    group, now = find_group(id), clock.now()
    unresolved = StandaloneTaskRow.objects.filter(group_id=id, ever_resolved=False, deadline_at__gte=now).exclude(
        priority=priority
    )
    ids = _apply_to_all(id, unresolved, decisions.prioritize(priority), PRIORITIZE, by, priority)
    facts: dict[str, Any] = {"taskGroupId": group.id, "schedulerId": group.scheduler_id}
    facts |= {"newPriority": NAMES_OF_PRIORITIES[priority], "tasksAffected": len(ids)}
    with transaction.atomic():
        publish_group_message(group, "task-group-priority-changed", clock.now(), **facts)
    return group, ids


def _apply_to_all(
    id: str, tasks: QuerySet[StandaloneTaskRow], command: Command, verb: str, by: str, priority: int = 0
) -> list[str]:
    """Apply a command to each task in its own transaction. Returns the sorted ids of the changed tasks."""
    # In the order in which workers would claim them.
    ids = list(tasks.order_by("task__status", "-priority", "task__created_at", "pk").values_list("pk", flat=True))
    if len(ids) > WAITED_FOR:
        requested = _already_requested(id, verb, priority)
        ids = [each for each in ids if each not in requested]
        enqueue_bulk_action(id, ids, verb, by, priority=priority)
    else:
        ids = [each for each in ids if _try_apply(each, command, verb, by)]
        if ids:
            record_bulk_action(id, ids, verb, by, priority=priority)
    return sorted(ids)


def _try_apply(task_id: str, command: Command, verb: str, by: str) -> bool:
    """Return True if the command changed the task, which may have been resolved or deleted since it was read."""
    effects: Sequence[Effect] = ()

    def recording(standalone: StandaloneTask, now: int) -> Iterable[Effect]:
        nonlocal effects
        effects = tuple(command(standalone, now))
        return effects

    with suppress(Conflict, NotFound), transaction.atomic():
        change_task(task_id, recording)
        if effects:
            audit.record("task", task_id, verb, by)
    return bool(effects)


def _already_requested(group_id: str, verb: str, priority: int) -> set[str]:
    """Return the tasks that have an undelivered message with the same action."""
    own = StandaloneTaskRow.objects.filter(group_id=group_id).values("pk")
    found = Message.objects.filter(subject=BULK_ACTION_SUBJECT, to__in=own).values_list("to", "facts")
    return {id for id, facts in found if (facts["verb"], facts["priority"]) == (verb, priority)}


LIMIT = 20
"""The maximum number of pending approvals of one group."""


def requires_group_approval(count: int) -> bool:
    """Return True if a second person has to approve an action on so many tasks."""
    return 0 < conf.bulk_approval_from <= count


def request_approval(
    group_id: str, task_ids: Sequence[str], verb: str, by: str, reason: str = "", priority: int = 0
) -> None:
    """Submit an action for approval.

    Raises:
        Conflict: when the group has too many pending approvals.
    """
    with transaction.atomic():
        if PendingApproval.objects.filter(group_id=group_id).count() >= LIMIT:
            raise Conflict(f"{LIMIT} actions on this group already wait for approval.")
        PendingApproval.objects.create(
            group_id=group_id,
            verb=verb,
            priority=priority,
            task_ids=list(task_ids),
            by=by[:255],
            reason=reason,
            created_at=clock.now(),
        )
        audit.record(
            "task_group", group_id, "request approval", by, reason=reason, facts={"act": verb, "tasks": len(task_ids)}
        )


def approve_action(group_id: str, act_id: int, by: str, reason: str = "") -> int:
    """Approve a pending action and enqueue it. Returns the number of its tasks.

    Raises:
        NotFound: when the action is not pending any more.
        Conflict: when `by` submitted the action.
    """
    with transaction.atomic():
        held = _take_pending(group_id, act_id)
        if held.by == by:
            raise Conflict(f"The action was submitted by {by}. Another person must approve it.")
        audit.record(
            "task_group", group_id, "approve", by, reason=reason, facts={"act": held.verb, "asked_by": held.by}
        )
        enqueue_bulk_action(group_id, held.task_ids, held.verb, held.by, held.reason, held.priority)
        held.delete()
    return len(held.task_ids)


def decline_action(group_id: str, act_id: int, by: str, reason: str = "") -> None:
    """Decline a pending action.

    Raises:
        NotFound: when the action is not pending any more.
    """
    with transaction.atomic():
        held = _take_pending(group_id, act_id)
        audit.record(
            "task_group", group_id, "decline", by, reason=reason, facts={"act": held.verb, "asked_by": held.by}
        )
        held.delete()


def _take_pending(group_id: str, act_id: int) -> PendingApproval:
    held = PendingApproval.objects.select_for_update().filter(pk=act_id, group_id=group_id).first()
    if held is None:
        raise NotFound("The action is no longer pending approval.")
    return held


"""The maximum number of open watches of a group."""
ENDED_BADLY = ("FAILED", "TIMED_OUT", "CANCELED")


def watch_group(group_id: str, event: str, mail: str, by: str) -> None:
    """Send an email when the event happens to a group.

    Raises:
        NotFound: when there is no such group.
        Invalid: when the event or the address is invalid.
        Conflict: when the event has happened already, or the group has too many watches.
    """
    find_group(group_id)
    if event not in GroupWatch.EVENTS:
        raise Invalid(f"Unknown event {event[:64]!r}. Use one of: {', '.join(GroupWatch.EVENTS)}.")
    try:
        validate_email(mail)
    except ValidationError as wrong:
        raise Invalid(f"{mail[:80]!r} is not a valid email address.") from wrong
    if _event_sentence(group_id, event):
        raise Conflict("The event has happened already.")
    if GroupWatch.objects.filter(group_id=group_id, notified_at=None).count() >= LIMIT:
        raise Conflict(f"The group already has {LIMIT} watches.")
    with transaction.atomic():
        GroupWatch.objects.create(group_id=group_id, event=event, mail=mail, by=by[:255], created_at=clock.now())
        audit.record("task_group", group_id, "watch", by, facts={"event": event})


def unwatch_group(group_id: str, watch_id: str, by: str) -> None:
    """Delete a watch.

    Raises:
        NotFound: when there is no such open watch.
    """
    number = int(watch_id) if watch_id.isascii() and watch_id.isdecimal() and len(watch_id) < 19 else 0
    with transaction.atomic():
        if not GroupWatch.objects.filter(pk=number, group_id=group_id, notified_at=None).delete()[0]:
            raise NotFound("The watch no longer exists.")
        audit.record("task_group", group_id, "unwatch", by)


def check_watched_groups(limit: int) -> int:
    """Check up to `limit` open watches, least recently checked first. Returns how many."""
    watched = GroupWatch.objects.filter(notified_at=None).order_by("checked_at", "id").values_list("pk", flat=True)
    return handle_each(list(watched[:limit]), _check_watch)


def _check_watch(watch_id: int) -> None:
    now = clock.now()
    row = GroupWatch.objects.filter(pk=watch_id, notified_at=None).first()
    if row is None:
        return
    sentence = _event_sentence(row.group_id, row.event)
    with transaction.atomic():
        seen = {"checked_at": now, **({"notified_at": now} if sentence else {})}
        # The update lets only one process send the email.
        if GroupWatch.objects.filter(pk=watch_id, notified_at=None).update(**seen) and sentence:
            _send_mail(row, sentence, now)


def _send_mail(row: GroupWatch, sentence: str, now: int) -> None:
    payload = {"sentence": sentence, "at": now, "taskGroupId": row.group_id}
    facts = {"sink": ALERT, "id": secrets.token_hex(16), "to": row.mail, "payload": payload}
    outbox.send(PUBLISH, now, to=f"watch {row.pk}", facts=facts)


def _event_sentence(group_id: str, event: str) -> str:
    """Return the text of the email, or an empty string if the event has not happened."""
    own = StandaloneTaskRow.objects.filter(group_id=group_id)
    bad = own.filter(ever_resolved=True, task__status__in=ENDED_BADLY)
    if event == GroupWatch.FAILED:
        first = bad.order_by("task__attempts__ended_at", "pk").values_list("task__name", "task__status").first()
        return f"In task group {group_id}, task {first[0]} was not successful: {first[1]}." if first else ""
    if own.filter(ever_resolved=False).exists() or not own.exists():
        return ""
    return (
        f"All {own.count():,} tasks of task group {group_id} are resolved; {bad.count():,} of them were not successful."
    )
