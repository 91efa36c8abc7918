"""The tabs of a group's page: a table of names, labels and contexts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from ...insight.standalone.task_groups.members import GroupMember
from ...insight.standalone.task_status import NAMES_OF_PRIORITIES
from ...models import AuditEntry
from ..badges import relative_time, render_badge
from ..queues.queue_list import queue_address
from .group_actions import priority_names
from .group_pictures import diagram_tab, timeline_tab
from .group_view_model import GroupViewModel, filter_context, load_task_page
from .page_addresses import standalone_task_address

PAGE_SIZE = 100
MAX_AUDIT_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class GroupTab:
    """One tab of a group's page."""

    name: str
    label: Any
    build_context: Callable[[GroupViewModel], dict[str, Any]]
    permission: str = ""

    @property
    def template(self) -> str:
        return f"ops/group/{self.name}.html"


def tasks_tab(view_model: GroupViewModel) -> dict[str, Any]:
    """Return the tasks, those that need attention first."""
    found, after = load_task_page(view_model, PAGE_SIZE)
    return {
        "rows": [_task_row(each, view_model) for each in found],
        "next": view_model.query.address(after=after) if after else "",
        "first": view_model.query.address() if view_model.query.values.get("after") else "",
        "count": len(view_model.visible_members),
        "priorities": priority_names(),
        **filter_context(view_model),
    }


def _task_row(member: GroupMember, view_model: GroupViewModel) -> dict[str, Any]:
    last = member.last
    return {
        "task": member,
        "address": standalone_task_address(member.id),
        "badge": render_badge(member.state),
        "queue": queue_address(member.queue),
        "priority": NAMES_OF_PRIORITIES.get(member.priority, ""),
        "waited": member.waited(view_model.now) if last else None,
        "ran": member.ran(view_model.now) if last and last.started_at is not None else None,
        "reason": last.reason if last and member.ended_badly else "",
        "last": last,
    }


def audit_tab(view_model: GroupViewModel) -> dict[str, Any]:
    """Return the actions of users on the group."""
    entries = AuditEntry.objects.filter(object_type="task_group", object_id=view_model.group.pk).order_by("-at", "-id")
    return {"entries": [(entry, relative_time(entry.at), entry.facts) for entry in entries[:MAX_AUDIT_ENTRIES]]}


TABS: Mapping[str, GroupTab] = {
    tab.name: tab
    for tab in (
        GroupTab("tasks", gettext_lazy("Tasks"), tasks_tab),
        GroupTab("timeline", gettext_lazy("Timeline"), timeline_tab),
        GroupTab("diagram", gettext_lazy("Diagram"), diagram_tab),
        GroupTab("audit", gettext_lazy("Audit log"), audit_tab, "conductor.view_auditentry"),
    )
}


def tabs_context(view_model: GroupViewModel, request: HttpRequest) -> dict[str, Any]:
    """Return the tabs and the context of the selected one. All links keep the filter."""
    is_open = [tab for tab in TABS.values() if not tab.permission or request.user.has_perm(tab.permission)]
    selected = next((tab for tab in is_open if tab.name == view_model.query["tab"]), TABS["tasks"])
    line = [(tab.label, view_model.query.address(tab=tab.name), tab is selected) for tab in is_open]
    return {"tabs": line, "tab_template": selected.template, "tab": selected.name, **selected.build_context(view_model)}
