"""The tabs of a group's page: a table of names, labels and contexts."""

from typing import Any

from django.utils.translation import gettext_lazy

from ...insight.standalone.task_groups.members import GroupMember
from ...insight.standalone.task_status import NAMES_OF_PRIORITIES
from ...models import AuditEntry
from ..badges import relative_time, render_badge
from ..page_tabs import PageTab
from ..queues.queue_list import queue_address
from .group_actions import priority_names
from .group_pictures import diagram_tab, timeline_tab
from .group_view_model import GroupViewModel, filter_context, load_task_page
from .page_addresses import standalone_task_address

PAGE_SIZE = 100
MAX_AUDIT_ENTRIES = 100


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
        "reason": last.reason if last and member.ended_badly and last.reason.upper() != member.state else "",
        "last": last,
    }


def audit_tab(view_model: GroupViewModel) -> dict[str, Any]:
    """Return the actions of users on the group."""
    entries = AuditEntry.objects.filter(object_type="task_group", object_id=view_model.group.pk).order_by("-at", "-id")
    return {"entries": [(entry, relative_time(entry.at), entry.facts) for entry in entries[:MAX_AUDIT_ENTRIES]]}


TABS: dict[str, PageTab[GroupViewModel]] = {
    tab.name: tab
    for tab in (
        PageTab("tasks", gettext_lazy("Tasks"), "ops/group/tasks.html", tasks_tab),
        PageTab("timeline", gettext_lazy("Timeline"), "ops/group/timeline.html", timeline_tab),
        PageTab("diagram", gettext_lazy("Diagram"), "ops/group/diagram.html", diagram_tab),
        PageTab("audit", gettext_lazy("Audit log"), "ops/group/audit.html", audit_tab, "conductor.view_auditentry"),
    )
}
