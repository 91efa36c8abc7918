"""Approval of actions on many tasks of a group by a second person, if it has at least `conf.bulk_approval_from` tasks.

Only actions on the admin pages need approval. Calls of API clients are authorized by their scopes alone.
"""

from collections.abc import Sequence

from django.db import transaction

from ... import clock, conf
from ...core.errors import Conflict, NotFound
from ...models import PendingApproval
from .. import audit
from .bulk_actions import enqueue_bulk_action

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
