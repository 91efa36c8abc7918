"""The sidebar, in the order of the operators' work, and the status bar.

An entry refers to a model by its class and to a page by its name. Entries that the user may not open, and sections
without entries, are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from ..access.models import AccessKey, Application, AuditEntry, Client, Grant, Secret, Variable
from ..definitions.models import TaskDefinition, WorkflowDefinition
from ..monitoring.pages.open_problems import count_problems
from ..monitoring.queries.health import health_for
from ..runs.models import Run
from ..schedules.models import Schedule, ScheduleExecution
from ..taskcluster.models import ScopeRole, TaskGroup
from ..utils.formatting import LazyText
from ..web.pages import Page, fragment_response

SECTION_NAMES = {
    "operate": _("Operate"),
    "design": _("Design"),
    "ai": _("AI"),
    "capacity": _("Capacity"),
    "taskcluster": _("Taskcluster"),
    "system": _("Admin"),
}


@dataclass(frozen=True, slots=True)
class SidebarEntry:
    """One entry: its model or page, its label, its icon, the pages that are tabs beside it, and paths below it.

    `below`: prefixes of other paths, relative to the overview, whose pages mark this entry.
    """

    target: Any
    label: str | LazyText
    icon: str
    tabs: "tuple[SidebarEntry, ...]" = ()
    below: tuple[str, ...] = ()

    @property
    def pages(self) -> "tuple[SidebarEntry, ...]":
        """Return the entry and its tabs."""
        return (self, *self.tabs)


TASKCLUSTER_ACCESS = (
    SidebarEntry(Client, _("Taskcluster clients"), "keys"),
    SidebarEntry(ScopeRole, _("Taskcluster roles"), "permissions"),
)
SECTIONS: dict[str, tuple[SidebarEntry, ...]] = {
    "operate": (
        SidebarEntry("index", _("Overview"), "overview"),
        SidebarEntry(
            Run, _("Runs"), "runs", (SidebarEntry("bulk", _("Bulk operations"), "do-retry"),), below=("runs/", "views/")
        ),
        SidebarEntry("failures", _("Failures"), "failures"),
        SidebarEntry(
            "human_tasks", _("Human tasks"), "inbox", (SidebarEntry("form_templates", _("Form templates"), "inbox"),)
        ),
    ),
    "design": (
        SidebarEntry(
            WorkflowDefinition,
            _("Workflows"),
            "workflows",
            (SidebarEntry("definition_drift", _("Definitions from Git"), "workflows"),),
        ),
        SidebarEntry(TaskDefinition, _("Task definitions"), "tasks"),
        SidebarEntry(
            Schedule, _("Schedules"), "schedules", (SidebarEntry(ScheduleExecution, _("Scheduled starts"), "starts"),)
        ),
        SidebarEntry("events", _("Events"), "events", below=("conductor/eventhandler/", "webhooks/", "event-sources/")),
    ),
    "ai": (
        SidebarEntry("integrations", _("Integrations"), "link"),
        SidebarEntry("prompts", _("Prompts"), "prompts"),
        SidebarEntry("model_usage", _("Usage"), "usage"),
        SidebarEntry("budgets", _("Budgets"), "budgets"),
        SidebarEntry("vector_indexes", _("Vector indexes"), "step-database"),
    ),
    "capacity": (
        SidebarEntry("queues", _("Queues"), "queues", below=("queue/", "why-waiting/")),
        SidebarEntry("workers", _("Workers"), "workers"),
    ),
    "taskcluster": (SidebarEntry(TaskGroup, _("Task groups"), "columns"), *TASKCLUSTER_ACCESS),
    "system": (
        SidebarEntry("system", _("System"), "server"),
        SidebarEntry("alert_targets", _("Alert targets"), "bell"),
        SidebarEntry(AuditEntry, _("Audit log"), "audit"),
        SidebarEntry("undelivered_messages", _("Undelivered messages"), "inbox"),
        SidebarEntry("retention", _("Retention"), "archive"),
        SidebarEntry(Secret, _("Secrets"), "secrets"),
        SidebarEntry(Variable, _("Variables"), "variables"),
        SidebarEntry(
            "people",
            _("People"),
            "people",
            (
                SidebarEntry(Application, _("Applications"), "applications"),
                SidebarEntry(AccessKey, _("Access keys"), "keys"),
                SidebarEntry(Grant, _("Permissions"), "permissions"),
                SidebarEntry(User, _("Users"), "person"),
                SidebarEntry(Group, _("Groups and roles"), "people"),
            ),
        ),
        SidebarEntry("quotas", _("Quotas"), "filter"),
    ),
}


def model_label(model: Any) -> Any:
    """Return the label of a model or page in the sidebar, or None if it is not there."""
    pages = (page for entries in SECTIONS.values() for entry in entries for page in entry.pages)
    return next((page.label for page in pages if page.target is model), None)


def page_name(opts: Any) -> str:
    """Return the title of a model's list: its label in the sidebar, otherwise its verbose name."""
    return str(model_label(opts.model) or capfirst(opts.verbose_name_plural))


def build_sections(
    available: Mapping[Any, dict[str, Any]], path: str, with_taskcluster: bool = True
) -> list[dict[str, Any]]:
    """Return the sections in the form of Django's app list, with the entry of the page at `path` marked.

    `available`: entries by model or page name. Without Taskcluster's section, its clients and roles, which are created
    before its first use, are in the last section.
    """
    sections = dict(SECTIONS)
    if not with_taskcluster:
        del sections["taskcluster"]
        sections["system"] = (*sections["system"], *TASKCLUSTER_ACCESS)
    visible = {
        name: [built for entry in entries if (built := _build_entry(entry, available, path))]
        for name, entries in sections.items()
    }
    return [_build_section(name, models) for name, models in visible.items() if models]


def page_tabs(sections: list[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return the tabs of the list or page at a path: none unless its entry of the sidebar has several pages."""
    for section in sections:
        for entry in section["models"]:
            if len(entry["pages"]) > 1 and any(page["admin_url"] == path for page in entry["pages"]):
                return entry["pages"]
    return []


def _build_entry(entry: SidebarEntry, available: Mapping[Any, dict[str, Any]], path: str) -> dict[str, Any] | None:
    """Return an entry with its pages that the user may open, or None if there are none. It links to the first one."""
    pages = [
        available[page.target] | {"name": page.label, "icon": page.icon}
        for page in entry.pages
        if available.get(page.target, {}).get("admin_url")
    ]
    if not pages:
        return None
    below = tuple(reverse("admin:index") + address for address in entry.below)
    is_current = any(_is_within(page, path) for page in pages) or path.startswith(below)
    return pages[0] | {"pages": pages, "is_current": is_current}


def _is_within(page: dict[str, Any], path: str) -> bool:
    """Return True if a path is that of a page, or of a page below it."""
    return page["admin_url"] == path or (not page.get("is_exact") and path.startswith(page["admin_url"]))


def _build_section(name: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": SECTION_NAMES[name], "app_label": name, "app_url": "", "has_module_perms": True, "models": models}


class StatusBarPage(Page):
    """Fragment with the server's health and the problems with the work. Open to every user who may sign in."""

    name = "status_bar"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_staff

    def urls(self, site) -> list[URLPattern]:
        return [path("status-bar/", site.admin_view(self.live), name=self.name)]

    def live(self, request: HttpRequest) -> HttpResponse:
        context: dict[str, Any] = {
            "health": health_for(request),
            "sees_sweeps": request.user.has_perm("conductor.view_sweeppass"),
            "problems": count_problems(request),
        }
        return fragment_response(request, "ops/monitoring/engine_status.html", context)

    def sidebar_entry(self) -> dict[str, Any]:
        return {}
