"""Acts on many tasks of a group that a second person has to approve first, where the policy wants one.

It is asked of people, on their pages: a client's call answers for itself, and its scopes say what it may do.
"""

from collections.abc import Sequence

from django.db import transaction

from ... import clock
from ...core.errors import Conflict, NotFound
from ...models import PendingApproval
from .. import approval_policy
from .bulk_actions import enqueue_bulk_action
from .task_actions import record_action

MOST = 20
"""Acts on one group that wait at a time."""


def requires_group_approval(verb: str, count: int) -> bool:
    """Whether the policy wants a second person: for the act, or for so many tasks."""
    return approval_policy.requires_approval(verb, lambda least: count >= least)


def request_approval(
    group_id: str, task_ids: Sequence[str], verb: str, by: str, reason: str = "", priority: int = 0
) -> None:
    """Keep what was asked until somebody else has looked at it. Raises Conflict where very much waits already."""
    with transaction.atomic():
        if PendingApproval.objects.filter(group_id=group_id).count() >= MOST:
            raise Conflict(f"{MOST} acts on this group wait for an approval already.")
        PendingApproval.objects.create(
            group_id=group_id,
            verb=verb,
            priority=priority,
            task_ids=list(task_ids),
            by=by[:255],
            reason=reason,
            created_at=clock.now(),
        )
        record_action("task_group", group_id, "ask", by, reason, {"act": verb, "tasks": len(task_ids)})


def approve_action(group_id: str, act_id: int, by: str, reason: str = "") -> int:
    """Have done what somebody else has asked for; with how many tasks. Raises NotFound, and Conflict for one's own."""
    with transaction.atomic():
        held = _take_pending(group_id, act_id)
        if held.by == by:
            raise Conflict(f"This is what {by} has asked for: a second person has to approve it.")
        record_action("task_group", group_id, "approve", by, reason, {"act": held.verb, "asked_by": held.by})
        enqueue_bulk_action(group_id, held.task_ids, held.verb, held.by, held.reason, held.priority)
        held.delete()
    return len(held.task_ids)


def decline_action(group_id: str, act_id: int, by: str, reason: str = "") -> None:
    """Have nothing done of it. Raises NotFound."""
    with transaction.atomic():
        held = _take_pending(group_id, act_id)
        record_action("task_group", group_id, "decline", by, reason, {"act": held.verb, "asked_by": held.by})
        held.delete()


def _take_pending(group_id: str, act_id: int) -> PendingApproval:
    held = PendingApproval.objects.select_for_update().filter(pk=act_id, group_id=group_id).first()
    if held is None:
        raise NotFound("Nobody waits for an approval of that any more.")
    return held
