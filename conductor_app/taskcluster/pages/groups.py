"""Actions on tasks of a group: on the selected tasks, or on all that match the filter."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from ...core.errors import RequestRefused
from ...engine.standalone import approvals, bulk_actions, task_actions, watches
from ...insight.standalone.task_groups.members import GroupMember, most_urgent_first
from ...insight.standalone.task_status import NAMES_OF_PRIORITIES, PRIORITIES
from ...models import PendingApproval
from ..badges import format_count as counted
from ..badges import render_badge
from ..error_messages import show_refusal
from .group_view_model import GroupViewModel

MAX_NAMED = 20


class GroupAction(NamedTuple):
    """One action. `description`: its effect on each task."""

    name: str
    label: Any
    description: Any


GROUP_ACTIONS = (
    GroupAction("rerun", gettext_lazy("Rerun"), gettext_lazy("Runs each task again, with all its retries.")),
    GroupAction(
        "schedule",
        pgettext_lazy("button", "Schedule"),
        gettext_lazy("Schedules each task now, regardless of its dependencies."),
    ),
    GroupAction(
        "cancel",
        gettext_lazy("Cancel"),
        gettext_lazy("Workers stop at their next request. Tasks that depend on a canceled task stay unscheduled."),
    ),
    GroupAction(
        task_actions.PRIORITIZE, gettext_lazy("Set priority"), gettext_lazy("Sets this priority for each task.")
    ),
)
ACTIONS_BY_NAME = {verb.name: verb for verb in GROUP_ACTIONS}


def group_actions() -> list[tuple[str, Any]]:
    """Return the actions that the form offers."""
    return [(verb.name, verb.label) for verb in GROUP_ACTIONS]


def priority_names() -> list[str]:
    """Return the names of priorities, highest first."""
    return [NAMES_OF_PRIORITIES[number] for number in sorted(NAMES_OF_PRIORITIES, reverse=True)]


def selected_tasks(view_model: GroupViewModel, form_data: QueryDict) -> list[GroupMember]:
    """Return the selected tasks, or all tasks that match the filter if none is selected."""
    ticked = set(form_data.getlist("task"))
    return [each for each in view_model.members if each.id in ticked] if ticked else view_model.visible_members


def confirmation_context(request: HttpRequest, view_model: GroupViewModel) -> dict[str, Any] | None:
    """Return the preview of an action, or None if the form names no action."""
    verb = ACTIONS_BY_NAME.get(request.GET.get("do", ""))
    priority = PRIORITIES.get(request.GET.get("priority", ""), 0)
    if verb is None:
        return None
    try:
        preview = bulk_actions.preview_bulk_action(selected_tasks(view_model, request.GET), verb.name, priority)
    except RequestRefused:
        return None
    return {
        "verb": verb,
        "priority": request.GET.get("priority", "") if verb.name == task_actions.PRIORITIZE else "",
        "preview": preview,
        "count": len(preview.moved),
        "needs_approval": approvals.requires_group_approval(len(preview.moved)),
        "named": [(each, render_badge(each.state)) for each in most_urgent_first(preview.moved, count=MAX_NAMED)],
        "more": max(len(preview.moved) - MAX_NAMED, 0),
        "ticked": request.GET.getlist("task"),
        "parameters": view_model.query.current_choices().items(),
        "back": view_model.query.address(),
    }


def submit_action(request: HttpRequest, view_model: GroupViewModel) -> None:
    """Execute the submitted action and add a message with its result."""
    verb, reason = request.POST.get("do", ""), request.POST.get("reason", "").strip()[:500]
    by = request.user.get_username()
    try:
        if verb == "seal":
            task_actions.seal_group(view_model.group.pk, by, reason)
            messages.success(request, _("Group sealed. It accepts no more tasks."))
            return
        if verb == "watch":
            watches.watch_group(
                view_model.group.pk, request.POST.get("event", ""), request.POST.get("mail", "").strip(), by
            )
            messages.success(request, _("You will receive one email."))
            return
        if verb == "unwatch":
            watches.unwatch_group(view_model.group.pk, request.POST.get("watch", ""), by)
            messages.success(request, _("Notification removed."))
            return
        if verb in ("approve", "decline"):
            _answer_approval(request, view_model.group.pk, verb == "approve", reason)
            return
        _request_action(request, view_model, verb, by, reason)
    except RequestRefused as refused:
        show_refusal(request, refused)


def _request_action(request: HttpRequest, view_model: GroupViewModel, verb: str, by: str, reason: str) -> None:
    priority = PRIORITIES.get(request.POST.get("priority", ""), 0) if verb == task_actions.PRIORITIZE else 0
    selected, seen = selected_tasks(view_model, request.POST), request.POST.get("seen", "")
    moved = bulk_actions.preview_bulk_action(selected, verb, priority).moved
    if not seen.isdecimal() or len(moved) > int(seen[:9]):
        # The user confirmed a number of tasks. More tasks require a new confirmation.
        messages.error(request, _("The number of tasks has increased in the meantime. Review the action again."))
        return
    if moved and approvals.requires_group_approval(len(moved)):
        approvals.request_approval(view_model.group.pk, [each.id for each in moved], verb, by, reason, priority)
        messages.warning(request, _("Waiting for approval. A second person must approve the action on this page."))
        return
    count = bulk_actions.request_bulk_action(view_model.group.pk, moved, verb, by, reason, priority)
    message = ngettext(
        "Requested for %(count)s task.",
        "Requested for %(count)s tasks. They are processed at up to 100 per second.",
        count,
    )
    messages.success(request, message % {"count": counted(count)})


def _answer_approval(request: HttpRequest, group_id: str, is_approved: bool, reason: str) -> None:
    """Handle the decision of the second person about a pending action."""
    act, by = request.POST.get("act", ""), request.user.get_username()
    number = int(act) if act.isascii() and act.isdecimal() and len(act) < 19 else 0
    if not is_approved:
        approvals.decline_action(group_id, number, by, reason)
        messages.success(request, _("Action declined."))
        return
    count = approvals.approve_action(group_id, number, by, reason)
    message = ngettext("Approved for %(count)s task.", "Approved for %(count)s tasks.", count)
    messages.success(request, message % {"count": counted(count)})


def pending_approvals(group_id: str, by: str) -> list[dict[str, Any]]:
    """Return the pending actions on the group, and whether the user may approve each of them."""
    return [
        {
            "act": approval,
            "word": ACTIONS_BY_NAME[approval.verb].label if approval.verb in ACTIONS_BY_NAME else approval.verb,
            "count": len(approval.task_ids),
            "is_own": approval.by == by,
        }
        for approval in PendingApproval.objects.filter(group_id=group_id).order_by("id")
    ]
