"""What operators may do to the tasks of a group: those that are ticked, or all that the filter shows."""

from typing import Any, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.errors import RequestRefused
from ...engine.standalone import approvals, bulk_actions, task_actions, watches
from ...insight.standalone import NAMES_OF_PRIORITIES, PRIORITIES
from ...insight.task_groups.members import GroupMember, most_urgent_first
from ...models import PendingApproval
from ..badges import badge
from ..badges import format_count as counted
from ..error_messages import show_refusal
from .group_view_model import GroupViewModel

MOST_NAMED = 20


class GroupAction(NamedTuple):
    """One thing that can be asked for; `does`: what it does to each task."""

    name: str
    word: Any
    does: Any


VERBS = (
    GroupAction("rerun", gettext_lazy("Rerun"), gettext_lazy("Each is tried once more, with all its retries.")),
    GroupAction(
        "schedule",
        gettext_lazy("Schedule"),
        gettext_lazy("Each may be handed out at once, whatever it waits for."),
    ),
    GroupAction(
        "cancel",
        gettext_lazy("Cancel"),
        gettext_lazy("Whoever works on one is told at its next word; what needs one to complete stays waiting."),
    ),
    GroupAction(task_actions.PRIORITIZE, gettext_lazy("Set the priority"), gettext_lazy("Each gets this priority.")),
)
BY_NAME = {verb.name: verb for verb in VERBS}


def group_actions() -> list[tuple[str, Any]]:
    """What a form offers."""
    return [(verb.name, verb.word) for verb in VERBS]


def priority_names() -> list[str]:
    """The names of priorities, the most urgent first."""
    return [NAMES_OF_PRIORITIES[number] for number in sorted(NAMES_OF_PRIORITIES, reverse=True)]


def selected_tasks(story: GroupViewModel, given: QueryDict) -> list[GroupMember]:
    """The tasks that are ticked; where none is, all that the filter shows."""
    ticked = set(given.getlist("task"))
    return [each for each in story.members if each.id in ticked] if ticked else story.visible_members


def confirmation(request: HttpRequest, story: GroupViewModel) -> dict[str, Any] | None:
    """What would come of it; None where it is not said what is to be done."""
    verb = BY_NAME.get(request.GET.get("do", ""))
    priority = PRIORITIES.get(request.GET.get("priority", ""), 0)
    if verb is None:
        return None
    try:
        foreseen = bulk_actions.preview_bulk_action(selected_tasks(story, request.GET), verb.name, priority)
    except RequestRefused:
        return None
    return {
        "verb": verb,
        "priority": request.GET.get("priority", "") if verb.name == task_actions.PRIORITIZE else "",
        "foreseen": foreseen,
        "count": len(foreseen.moved),
        "needs_approval": approvals.requires_group_approval(verb.name, len(foreseen.moved)),
        "named": [(each, badge(each.state)) for each in most_urgent_first(foreseen.moved, count=MOST_NAMED)],
        "more": max(len(foreseen.moved) - MOST_NAMED, 0),
        "ticked": request.GET.getlist("task"),
        "kept": story.asked.kept.items(),
        "back": story.asked.address(),
    }


def submit_action(request: HttpRequest, story: GroupViewModel) -> None:
    """Have it done, and say so; a refusal is said too."""
    verb, reason = request.POST.get("do", ""), request.POST.get("reason", "").strip()[:500]
    by = request.user.get_username()
    try:
        if verb == "seal":
            task_actions.seal_group(story.group.pk, by, reason)
            messages.success(request, _("The group is sealed: it takes no more tasks."))
            return
        if verb == "watch":
            watches.watch_group(story.group.pk, request.POST.get("event", ""), request.POST.get("mail", "").strip(), by)
            messages.success(request, _("You will be told by mail, once."))
            return
        if verb == "unwatch":
            watches.unwatch_group(story.group.pk, request.POST.get("watch", ""), by)
            messages.success(request, _("Nobody is told of that any more."))
            return
        if verb in ("approve", "decline"):
            _answer(request, story.group.pk, verb == "approve", reason)
            return
        _ask(request, story, verb, by, reason)
    except RequestRefused as refused:
        show_refusal(request, refused)


def _ask(request: HttpRequest, story: GroupViewModel, verb: str, by: str, reason: str) -> None:
    priority = PRIORITIES.get(request.POST.get("priority", ""), 0) if verb == task_actions.PRIORITIZE else 0
    wanted, seen = selected_tasks(story, request.POST), request.POST.get("seen", "")
    moved = bulk_actions.preview_bulk_action(wanted, verb, priority).moved
    if not seen.isdecimal() or len(moved) > int(seen[:9]):
        # What was confirmed was said with a number.
        messages.error(request, _("Meanwhile it would be more tasks than were shown: look again."))
        return
    if moved and approvals.requires_group_approval(verb, len(moved)):
        approvals.request_approval(story.group.pk, [each.id for each in moved], verb, by, reason, priority)
        messages.warning(request, _("It waits for a second person, who has to approve it on this page."))
        return
    count = bulk_actions.request_bulk_action(story.group.pk, moved, verb, by, reason, priority)
    words = ngettext(
        "%(count)s task was asked for it.",
        "%(count)s tasks were asked for it: the first ones at once, the others a hundred a second.",
        count,
    )
    messages.success(request, words % {"count": counted(count)})


def _answer(request: HttpRequest, group_id: str, is_approved: bool, reason: str) -> None:
    """What a second person says of an act that waits."""
    act, by = request.POST.get("act", ""), request.user.get_username()
    number = int(act) if act.isascii() and act.isdecimal() and len(act) < 19 else 0
    if not is_approved:
        approvals.decline_action(group_id, number, by, reason)
        messages.success(request, _("Nothing is done of it."))
        return
    count = approvals.approve_action(group_id, number, by, reason)
    words = ngettext("It is approved: %(count)s task.", "It is approved: %(count)s tasks.", count)
    messages.success(request, words % {"count": counted(count)})


def pending_approvals(group_id: str, by: str) -> list[dict[str, Any]]:
    """The acts on the group that wait for a second person, and whether this one may be it."""
    return [
        {
            "act": held,
            "word": BY_NAME[held.verb].word if held.verb in BY_NAME else held.verb,
            "count": len(held.task_ids),
            "is_own": held.by == by,
        }
        for held in PendingApproval.objects.filter(group_id=group_id).order_by("id")
    ]
