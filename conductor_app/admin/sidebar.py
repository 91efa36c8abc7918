"""The sidebar: what there is to see, in the order of the operators' work.

A model stands here by its class, a page by its name. What somebody may not see is left out; an empty section too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
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
    """One line: whose page it is, its word, its icon."""

    target: Any
    label: Any
    icon: str


SECTION_NAMES = {"operate": _("Operate"), "design": _("Design"), "record": _("Record"), "system": _("System")}
SECTIONS: dict[str, tuple[SidebarEntry, ...]] = {
    "operate": (
        SidebarEntry("index", _("Overview"), "overview"),
        SidebarEntry(Run, _("Runs"), "runs"),
        SidebarEntry("failures", _("Failures"), "failures"),
        SidebarEntry("views", _("Views"), "views"),
        SidebarEntry("bulk", _("Operations"), "do-retry"),
        SidebarEntry(Attempt, _("Attempts"), "attempts"),
        SidebarEntry("waiting", pgettext_lazy("the inbox of people", "Waiting"), "inbox"),
        SidebarEntry(TaskGroup, _("Task groups"), "columns"),
        SidebarEntry(StandaloneTask, _("Stand-alone tasks"), "todo"),
        SidebarEntry("queues", _("Queues"), "queues"),
        SidebarEntry("workers", _("Workers"), "workers"),
    ),
    "design": (
        SidebarEntry(WorkflowDefinition, _("Workflows"), "workflows"),
        SidebarEntry(TaskDefinition, _("Tasks"), "tasks"),
        SidebarEntry("form_templates", _("Form templates"), "inbox"),
        SidebarEntry(Schedule, _("Schedules"), "schedules"),
        SidebarEntry("events", _("Events"), "events"),
    ),
    "record": (
        SidebarEntry(ScheduleExecution, _("Scheduled starts"), "starts"),
        SidebarEntry(AuditEntry, _("Audit"), "audit"),
        SidebarEntry(Artifact, _("Artifacts"), "box"),
    ),
    "system": (
        SidebarEntry("system", _("System"), "server"),
        SidebarEntry("retention", _("Retention"), "archive"),
        SidebarEntry("sweeps", _("Sweeps"), "sweeps"),
        SidebarEntry(PeriodicTask, _("Beats"), "beats"),
        SidebarEntry(IntervalSchedule, _("Intervals"), "waiting"),
        SidebarEntry(CrontabSchedule, _("Crontabs"), "schedules"),
        SidebarEntry(Secret, _("Secrets"), "secrets"),
        SidebarEntry(Variable, _("Variables"), "variables"),
        SidebarEntry(Application, _("Applications"), "applications"),
        SidebarEntry(AccessKey, _("Access keys"), "keys"),
        SidebarEntry(Grant, _("Permissions"), "permissions"),
        SidebarEntry(Client, _("Taskcluster clients"), "keys"),
        SidebarEntry(ScopeRole, _("Taskcluster roles"), "permissions"),
        SidebarEntry(User, _("Users"), "person"),
        SidebarEntry(Group, _("Groups and roles"), "people"),
    ),
}


def model_label(model: Any) -> Any:
    """By which word its page is known; nothing where it has none here."""
    return next((entry.label for entries in SECTIONS.values() for entry in entries if entry.target is model), None)


def page_name(opts: Any) -> str:
    """What the list of a model is called: as it stands here, or else by its own name."""
    return str(model_label(opts.model) or capfirst(opts.verbose_name_plural))


def build_sections(known: Mapping[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    """The sections as Django's templates know apps, of what this person may see: `known`, by model or page name."""
    visible = {
        name: [
            known[entry.target] | {"name": entry.label, "icon": entry.icon}
            for entry in entries
            if entry.target in known
        ]
        for name, entries in SECTIONS.items()
    }
    return [_build_section(name, models) for name, models in visible.items() if models]


def _build_section(name: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": SECTION_NAMES[name], "app_label": name, "app_url": "", "has_module_perms": True, "models": models}
