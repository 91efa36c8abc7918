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
class Entry:
    """One line: whose page it is, its word, its icon."""

    of: Any
    word: Any
    icon: str


NAMES = {"operate": _("Operate"), "design": _("Design"), "record": _("Record"), "system": _("System")}
SECTIONS: dict[str, tuple[Entry, ...]] = {
    "operate": (
        Entry("index", _("Overview"), "overview"),
        Entry(Run, _("Runs"), "runs"),
        Entry("failures", _("Failures"), "failures"),
        Entry("views", _("Views"), "views"),
        Entry("bulk", _("Operations"), "do-retry"),
        Entry(Attempt, _("Attempts"), "attempts"),
        Entry("waiting", pgettext_lazy("the inbox of people", "Waiting"), "inbox"),
        Entry(TaskGroup, _("Task groups"), "columns"),
        Entry(StandaloneTask, _("Stand-alone tasks"), "todo"),
        Entry("queues", _("Queues"), "queues"),
        Entry("workers", _("Workers"), "workers"),
    ),
    "design": (
        Entry(WorkflowDefinition, _("Workflows"), "workflows"),
        Entry(TaskDefinition, _("Tasks"), "tasks"),
        Entry("form_templates", _("Form templates"), "inbox"),
        Entry(Schedule, _("Schedules"), "schedules"),
        Entry("events", _("Events"), "events"),
    ),
    "record": (
        Entry(ScheduleExecution, _("Scheduled starts"), "starts"),
        Entry(AuditEntry, _("Audit"), "audit"),
        Entry(Artifact, _("Artifacts"), "box"),
    ),
    "system": (
        Entry("system", _("System"), "server"),
        Entry("retention", _("Retention"), "archive"),
        Entry("sweeps", _("Sweeps"), "sweeps"),
        Entry(PeriodicTask, _("Beats"), "beats"),
        Entry(IntervalSchedule, _("Intervals"), "waiting"),
        Entry(CrontabSchedule, _("Crontabs"), "schedules"),
        Entry(Secret, _("Secrets"), "secrets"),
        Entry(Variable, _("Variables"), "variables"),
        Entry(Application, _("Applications"), "applications"),
        Entry(AccessKey, _("Access keys"), "keys"),
        Entry(Grant, _("Permissions"), "permissions"),
        Entry(Client, _("Taskcluster clients"), "keys"),
        Entry(ScopeRole, _("Taskcluster roles"), "permissions"),
        Entry(User, _("Users"), "person"),
        Entry(Group, _("Groups and roles"), "people"),
    ),
}


def word_of(model: Any) -> Any:
    """By which word its page is known; nothing where it has none here."""
    return next((entry.word for entries in SECTIONS.values() for entry in entries if entry.of is model), None)


def page_name(opts: Any) -> str:
    """What the list of a model is called: as it stands here, or else by its own name."""
    return str(word_of(opts.model) or capfirst(opts.verbose_name_plural))


def sections(known: Mapping[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    """The sections as Django's templates know apps, of what this person may see: `known`, by model or page name."""
    shown = {
        name: [known[entry.of] | {"name": entry.word, "icon": entry.icon} for entry in entries if entry.of in known]
        for name, entries in SECTIONS.items()
    }
    return [_section(name, models) for name, models in shown.items() if models]


def _section(name: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": NAMES[name], "app_label": name, "app_url": "", "has_module_perms": True, "models": models}
