"""Our AdminSite: what is registered, and in which order the sidebar lists it."""

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group, User
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from ..models import (
    AccessKey,
    Application,
    Attempt,
    AuditEntry,
    Client,
    Grant,
    Run,
    Schedule,
    ScheduleExecution,
    ScopeRole,
    Secret,
    TaskDefinition,
    Variable,
    WorkflowDefinition,
)
from .access import AccessKeyAdmin
from .applications import ApplicationAdmin, GrantAdmin
from .attempts import AttemptAdmin
from .audit import AuditAdmin
from .clients import ClientAdmin, ScopeRoleAdmin
from .named import SecretAdmin, VariableAdmin
from .overview import overview
from .pages import Page
from .people import Groups, People
from .queues import QueuesPage
from .runs import RunAdmin
from .schedules import SCHEDULES
from .sweeps import SweepsPage
from .task_definitions import TaskDefinitionAdmin
from .workflow_definitions import WorkflowDefinitionAdmin
from .workflow_schedules import ScheduleAdmin, ScheduleExecutionAdmin

PAGES: tuple[Page, ...] = (QueuesPage(), SweepsPage())
SCREENS = {
    Run: RunAdmin,
    Attempt: AttemptAdmin,
    WorkflowDefinition: WorkflowDefinitionAdmin,
    TaskDefinition: TaskDefinitionAdmin,
    Schedule: ScheduleAdmin,
    ScheduleExecution: ScheduleExecutionAdmin,
    AuditEntry: AuditAdmin,
    Secret: SecretAdmin,
    Variable: VariableAdmin,
    Application: ApplicationAdmin,
    AccessKey: AccessKeyAdmin,
    Grant: GrantAdmin,
    Client: ClientAdmin,
    ScopeRole: ScopeRoleAdmin,
    User: People,
    Group: Groups,
    **SCHEDULES,
}
SIDEBAR: dict[str, dict[Any, str]] = {
    "Operate": {Run: "Runs", Attempt: "Attempts", PAGES[0]: "Queues", Schedule: "Schedules"},
    "Definitions": {WorkflowDefinition: "Workflows", TaskDefinition: "Tasks"},
    "Record": {ScheduleExecution: "Scheduled starts", AuditEntry: "Audit"},
    "System": {
        PAGES[1]: "Sweeps",
        PeriodicTask: "Beats",
        IntervalSchedule: "Intervals",
        CrontabSchedule: "Crontabs",
        Secret: "Secrets",
        Variable: "Variables",
        Application: "Applications",
        AccessKey: "Access keys",
        Grant: "Permissions",
        Client: "Taskcluster clients",
        ScopeRole: "Taskcluster roles",
        User: "Users",
        Group: "Groups and roles",
    },
}


class OperatorsSite(AdminSite):
    """Everything that a person sees in the browser."""

    site_header = "Conductor"
    site_title = "Conductor"
    index_title = "Overview"
    site_url = None

    def get_urls(self) -> list[URLPattern | URLResolver]:
        return [*(page.url(self) for page in PAGES), *super().get_urls()]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """The sidebar in the order of the operators' work."""
        apps = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        known: dict[Any, dict] = {model["model"]: model for app in apps for model in app["models"]}
        known |= {page: page.in_sidebar() for page in PAGES if page.is_open_to(request)}
        sections = {
            name: [known[key] | {"name": word} for key, word in rows.items() if key in known]
            for name, rows in SIDEBAR.items()
        }
        return [_section(name, models) for name, models in sections.items() if models]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        shown = overview() if request.user.has_perm("conductor.view_run") else {}
        return super().index(request, {**shown, **(extra_context or {})})


def _section(name: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "app_label": name.lower(), "app_url": "", "has_module_perms": True, "models": models}


site = OperatorsSite(name="admin")
for model, screen in SCREENS.items():
    site.register(model, screen)
