"""The sidebar: what there is to see, in the order of the operators' work.

A model stands here by its class, a page by its name. What somebody may not see is left out; an empty section too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
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
    Solo,
    TaskDefinition,
    Variable,
    WorkflowDefinition,
)
from ..models import Group as TaskGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: whose page it is, its word, its icon."""

    of: Any
    word: str
    icon: str


SECTIONS: dict[str, tuple[Entry, ...]] = {
    "Operate": (
        Entry("index", "Overview", "overview"),
        Entry(Run, "Runs", "runs"),
        Entry("failures", "Failures", "failures"),
        Entry("views", "Views", "views"),
        Entry("bulk", "Operations", "do-retry"),
        Entry(Attempt, "Attempts", "attempts"),
        Entry("waiting", "Waiting", "inbox"),
        Entry(TaskGroup, "Task groups", "columns"),
        Entry(Solo, "Stand-alone tasks", "tasks"),
        Entry("queues", "Queues", "queues"),
        Entry("workers", "Workers", "workers"),
    ),
    "Design": (
        Entry(WorkflowDefinition, "Workflows", "workflows"),
        Entry(TaskDefinition, "Tasks", "tasks"),
        Entry(Schedule, "Schedules", "schedules"),
        Entry("events", "Events", "events"),
    ),
    "Record": (
        Entry(ScheduleExecution, "Scheduled starts", "starts"),
        Entry(AuditEntry, "Audit", "audit"),
        Entry(Artifact, "Artifacts", "starts"),
    ),
    "System": (
        Entry("system", "System", "sweeps"),
        Entry("retention", "Retention", "starts"),
        Entry("sweeps", "Sweeps", "sweeps"),
        Entry(PeriodicTask, "Beats", "beats"),
        Entry(IntervalSchedule, "Intervals", "beats"),
        Entry(CrontabSchedule, "Crontabs", "beats"),
        Entry(Secret, "Secrets", "secrets"),
        Entry(Variable, "Variables", "variables"),
        Entry(Application, "Applications", "applications"),
        Entry(AccessKey, "Access keys", "keys"),
        Entry(Grant, "Permissions", "permissions"),
        Entry(Client, "Taskcluster clients", "keys"),
        Entry(ScopeRole, "Taskcluster roles", "permissions"),
        Entry(User, "Users", "people"),
        Entry(Group, "Groups and roles", "people"),
    ),
}


def sections(known: Mapping[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    """The sections as Django's templates know apps, of what this person may see: `known`, by model or page name."""
    shown = {
        name: [known[entry.of] | {"name": entry.word, "icon": entry.icon} for entry in entries if entry.of in known]
        for name, entries in SECTIONS.items()
    }
    return [_section(name, models) for name, models in shown.items() if models]


def _section(name: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "app_label": name.lower(), "app_url": "", "has_module_perms": True, "models": models}
