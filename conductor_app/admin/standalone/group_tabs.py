"""The tabs of a group's page: a table of names, words and what each shows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from ...insight.standalone import NAMES_OF_PRIORITIES
from ...insight.task_groups.members import GroupMember
from ...models import AuditEntry
from ..badges import badge, relative_time
from ..monitoring.queues import queue_address
from .addresses import standalone_address
from .group_actions import priority_names
from .group_pictures import diagram_tab, timeline_tab
from .group_view_model import GroupViewModel, filter_context, page_of_tasks

PAGE = 100
MOST_AUDITED = 100


@dataclass(frozen=True, slots=True)
class GroupTab:
    """One way of looking at a group."""

    name: str
    word: Any
    shown: Callable[[GroupViewModel], dict[str, Any]]
    permission: str = ""

    @property
    def template(self) -> str:
        return f"ops/group/{self.name}.html"


def tasks_tab(story: GroupViewModel) -> dict[str, Any]:
    """Its tasks, those first that somebody wants to see first."""
    found, after = page_of_tasks(story, PAGE)
    return {
        "rows": [_row(each, story) for each in found],
        "next": story.asked.address(after=after) if after else "",
        "first": story.asked.address() if story.asked.values.get("after") else "",
        "count": len(story.visible_members),
        "priorities": priority_names(),
        **filter_context(story),
    }


def _row(member: GroupMember, story: GroupViewModel) -> dict[str, Any]:
    last = member.last
    return {
        "task": member,
        "address": standalone_address(member.id),
        "badge": badge(member.state),
        "queue": queue_address(member.queue),
        "priority": NAMES_OF_PRIORITIES.get(member.priority, ""),
        "waited": member.waited(story.now) if last else None,
        "ran": member.ran(story.now) if last and last.started_at is not None else None,
        "reason": last.reason if last and member.ended_badly else "",
        "last": last,
    }


def audit_tab(story: GroupViewModel) -> dict[str, Any]:
    """What people did to it."""
    entries = AuditEntry.objects.filter(object_type="task_group", object_id=story.group.pk).order_by("-at", "-id")
    return {"entries": [(entry, relative_time(entry.at), entry.facts) for entry in entries[:MOST_AUDITED]]}


TABS: Mapping[str, GroupTab] = {
    tab.name: tab
    for tab in (
        GroupTab("tasks", gettext_lazy("Tasks"), tasks_tab),
        GroupTab("timeline", gettext_lazy("Timeline"), timeline_tab),
        GroupTab("diagram", gettext_lazy("Diagram"), diagram_tab),
        GroupTab("audit", gettext_lazy("Audit"), audit_tab, "conductor.view_auditentry"),
    )
}


def tabs_context(story: GroupViewModel, request: HttpRequest) -> dict[str, Any]:
    """The line of tabs and what the chosen one shows; all of them keep the filter."""
    is_open = [tab for tab in TABS.values() if not tab.permission or request.user.has_perm(tab.permission)]
    chosen = next((tab for tab in is_open if tab.name == story.asked["tab"]), TABS["tasks"])
    line = [(tab.word, story.asked.address(tab=tab.name), tab is chosen) for tab in is_open]
    return {"tabs": line, "tab_template": chosen.template, "tab": chosen.name, **chosen.shown(story)}
