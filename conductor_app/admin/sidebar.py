"""The sidebar: sections and entries, in the order of the operators' work.

An entry refers to a model by its class and to a page by its name. Entries that the user may not open, and sections
without entries, are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from ..models import (
    AccessKey,
    Application,
    Artifact,
    Attempt,
    AuditEntry,
    Client,
    Grant,
    Run,
    Schedule,
    ScheduleExecution,
    ScopeRole,
    Secret,
    StandaloneTask,
    TaskDefinition,
    TaskGroup,
    Variable,
    WorkflowDefinition,
)


@dataclass(frozen=True, slots=True)
class SidebarEntry:
    """One entry: its model or page, its label, its icon."""

    target: Any
    label: Any
    icon: str


SECTION_NAMES = {"operate": _("Operate"), "design": _("Design"), "record": _("History"), "system": _("System")}
SECTIONS: dict[str, tuple[SidebarEntry, ...]] = {
    "operate": (
        SidebarEntry("index", _("Overview"), "overview"),
        SidebarEntry(Run, _("Runs"), "runs"),
        SidebarEntry("failures", _("Failures"), "failures"),
        SidebarEntry("views", _("Saved views"), "views"),
        SidebarEntry("bulk", _("Bulk operations"), "do-retry"),
        SidebarEntry(Attempt, _("Task executions"), "attempts"),
        SidebarEntry("waiting", _("Human tasks"), "inbox"),
        SidebarEntry(TaskGroup, _("Task groups"), "columns"),
        SidebarEntry(StandaloneTask, _("Taskcluster tasks"), "todo"),
        SidebarEntry("queues", _("Queues"), "queues"),
        SidebarEntry("workers", _("Workers"), "workers"),
    ),
    "design": (
        SidebarEntry(WorkflowDefinition, _("Workflows"), "workflows"),
        SidebarEntry(TaskDefinition, _("Task definitions"), "tasks"),
        SidebarEntry("form_templates", _("Form templates"), "inbox"),
        SidebarEntry(Schedule, _("Schedules"), "schedules"),
        SidebarEntry("events", _("Events"), "events"),
    ),
    "record": (
        SidebarEntry(ScheduleExecution, _("Scheduled starts"), "starts"),
        SidebarEntry(AuditEntry, _("Audit log"), "audit"),
        SidebarEntry(Artifact, _("Artifacts"), "box"),
    ),
    "system": (
        SidebarEntry("system", _("System"), "server"),
        SidebarEntry("undelivered_messages", _("Undelivered messages"), "inbox"),
        SidebarEntry("retention", _("Retention"), "archive"),
        SidebarEntry("sweeps", _("Background jobs"), "sweeps"),
        SidebarEntry(PeriodicTask, _("Periodic tasks"), "beats"),
        SidebarEntry(IntervalSchedule, _("Interval schedules"), "waiting"),
        SidebarEntry(CrontabSchedule, _("Crontab schedules"), "schedules"),
        SidebarEntry(Secret, _("Secrets"), "secrets"),
        SidebarEntry(Variable, _("Variables"), "variables"),
        SidebarEntry(Application, _("Applications"), "applications"),
        SidebarEntry(AccessKey, _("Access keys"), "keys"),
        SidebarEntry(Grant, _("Permissions"), "permissions"),
        SidebarEntry("quotas", _("Quotas"), "filter"),
        SidebarEntry(Client, _("Taskcluster clients"), "keys"),
        SidebarEntry(ScopeRole, _("Taskcluster roles"), "permissions"),
        SidebarEntry(User, _("Users"), "person"),
        SidebarEntry(Group, _("Groups and roles"), "people"),
    ),
}


def model_label(model: Any) -> Any:
    """Return the label of a model or page in the sidebar, or None if it is not there."""
    return next((entry.label for entries in SECTIONS.values() for entry in entries if entry.target is model), None)


def page_name(opts: Any) -> str:
    """Return the title of a model's list: its label in the sidebar, otherwise its verbose name."""
    return str(model_label(opts.model) or capfirst(opts.verbose_name_plural))


def build_sections(available: Mapping[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the sections in the form of Django's app list. `available`: entries by model or page name."""
    visible = {
        name: [
            available[entry.target] | {"name": entry.label, "icon": entry.icon}
            for entry in entries
            if entry.target in available
        ]
        for name, entries in SECTIONS.items()
    }
    return [_build_section(name, models) for name, models in visible.items() if models]


def _build_section(name: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": SECTION_NAMES[name], "app_label": name, "app_url": "", "has_module_perms": True, "models": models}
