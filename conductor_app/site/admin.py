"""The AdminSite of the operators: registered models and pages, and the context that every page shares."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import Resolver404, URLPattern, URLResolver, resolve, reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.common import no_append_slash

from ..access.models import AccessKey, Application, AuditEntry, Client, Grant, Secret, Variable
from ..access.pages.applications import AccessKeyAdmin, ApplicationAdmin, GrantAdmin
from ..access.pages.audit import AuditAdmin
from ..access.pages.quotas import QuotasPage
from ..access.pages.secrets import SecretAdmin, VariableAdmin
from ..access.tokens import is_single_sign_on
from ..access.visibility import may
from ..ai.pages.budgets import BudgetsPage
from ..ai.pages.integrations import IntegrationModelPage, IntegrationPage, IntegrationsPage, NewIntegrationPage
from ..ai.pages.prompts import NewPromptPage, PromptPage, PromptsPage
from ..ai.pages.usage import VectorIndexesPage, show_model_use
from ..alerts.pages.rules import AlertPage, AlertsPage
from ..alerts.pages.saved_views import TilesPage, ViewPage, ViewsPage
from ..alerts.pages.targets import AlertTargetPage, NewAlertTargetPage
from ..bulk.pages.operations import BulkExportPage, BulkOperationPage, BulkPage, BulkPlanPage
from ..bulk.pages.planner import PlannerPage
from ..definitions.models import TaskDefinition, WorkflowDefinition
from ..definitions.pages.versions import DefinitionHistoryPage
from ..definitions.pages.workflows import TaskDefinitionAdmin, WorkflowDefinitionAdmin
from ..definitions.sources.pages import DriftExportPage, DriftPage
from ..events.models import EventHandler
from ..events.pages.events import EventPage, EventsPage, ReplayPage, SourcesPage
from ..events.pages.handlers import EventHandlerAdmin
from ..events.pages.webhooks import NewWebhookPage, WebhookPage, WebhooksPage
from ..failures.pages.groups import FailureGroupPage, FailuresPage
from ..human_tasks.pages.form_templates import FormTemplatePage, FormTemplatesPage, NewFormTemplatePage
from ..human_tasks.pages.tasks import HumanTaskAnswerPage, HumanTasksPage
from ..monitoring.pages.overview import AttentionPage, FirstStepsPage, OverviewActivityPage, overview_context
from ..monitoring.pages.system import SystemPage
from ..monitoring.queries.health import health_for
from ..runs.models import Run
from ..runs.pages.comparison import ComparePage
from ..runs.pages.list import RunAdmin
from ..runs.pages.messages import UndeliveredMessagePage, UndeliveredMessagesPage
from ..runs.pages.retention import RetentionPage
from ..runs.pages.tasks import AttemptLogPage, AttemptPayloadPage, TaskActionPage
from ..schedules.models import Schedule, ScheduleExecution
from ..schedules.pages.schedules import ScheduleAdmin, ScheduleExecutionAdmin
from ..settings import conf
from ..settings import table as conf_table
from ..taskcluster.models import ScopeRole, StandaloneTask, TaskGroup
from ..taskcluster.pages.clients import ClientAdmin, ScopeRoleAdmin
from ..taskcluster.pages.groups import GroupAdmin
from ..taskcluster.pages.tasks import StandaloneTaskAdmin
from ..tasks.pages.queues import QueuePage, QueuesPage, WhyWaitingPage
from ..tasks.pages.workers import WorkerPage, WorkersPage
from ..web.forms import strip_nul_from_request
from ..web.pages import Page, in_read_snapshot, name_missing_permission, without_empty_parameters
from ..web.preferences import PreferencesPage, is_compact, zone_of
from .help import HelpPage, guide_address
from .palette import PalettePage
from .sidebar import (
    AdministrationPage,
    StatusBarPage,
    build_sections,
    known_problems,
    page_name,
    page_tabs,
    used_entries,
)

OBJECT_PAGES: tuple[Page, ...] = (
    PlannerPage(),
    FailuresPage(),
    FailureGroupPage(),
    BulkPlanPage(),
    BulkPage(),
    BulkExportPage(),
    BulkOperationPage(),
    ComparePage(),
    AttemptPayloadPage(),
    AttemptLogPage(),
    TaskActionPage(),
    QueuePage(),
    WhyWaitingPage(),
    WorkersPage(),
    WorkerPage(),
    SystemPage(),
    UndeliveredMessagesPage(),
    UndeliveredMessagePage(),
    RetentionPage(),
    QuotasPage(),
    ViewsPage(),
    ViewPage(),
    AlertPage(),
    AlertsPage(),
    NewAlertTargetPage(),
    AlertTargetPage(),
    TilesPage(),
    EventsPage(),
    EventPage(),
    ReplayPage(),
    SourcesPage(),
    WebhooksPage(),
    NewWebhookPage(),
    WebhookPage(),
    DefinitionHistoryPage(),
    DriftExportPage(),
    FormTemplatesPage(),
    NewFormTemplatePage(),
    FormTemplatePage(),
    NewIntegrationPage(),
    IntegrationModelPage(),
    IntegrationPage(),
    NewPromptPage(),
    PromptPage(),
)
PAGES: tuple[Page, ...] = (
    OverviewActivityPage(),
    AttentionPage(),
    FirstStepsPage(),
    HumanTasksPage(),
    HumanTaskAnswerPage(),
    QueuesPage(),
    DriftPage(),
    IntegrationsPage(),
    PromptsPage(),
    BudgetsPage(),
    VectorIndexesPage(),
    PalettePage(),
    PreferencesPage(),
    StatusBarPage(),
    AdministrationPage(),
    HelpPage(),
    *OBJECT_PAGES,
)
MODEL_ADMINS = {
    Run: RunAdmin,
    WorkflowDefinition: WorkflowDefinitionAdmin,
    TaskDefinition: TaskDefinitionAdmin,
    EventHandler: EventHandlerAdmin,
    Schedule: ScheduleAdmin,
    ScheduleExecution: ScheduleExecutionAdmin,
    AuditEntry: AuditAdmin,
    Secret: SecretAdmin,
    StandaloneTask: StandaloneTaskAdmin,
    TaskGroup: GroupAdmin,
    Variable: VariableAdmin,
    Application: ApplicationAdmin,
    AccessKey: AccessKeyAdmin,
    Grant: GrantAdmin,
    Client: ClientAdmin,
    ScopeRole: ScopeRoleAdmin,
}


def is_page(path: str) -> bool:
    """Return True if there is a page at this path."""
    try:
        return getattr(resolve(path).func, "should_append_slash", True)
    except Resolver404:
        return False


class OperatorsSite(AdminSite):
    """The admin site with all operator pages."""

    site_header = "Conductor"
    site_title = "Conductor"
    index_title = _("Overview")
    site_url = None

    pages: tuple[Page, ...] = PAGES

    def get_urls(self) -> list[URLPattern | URLResolver]:
        pages = (line for page in self.pages for line in page.urls(self))
        return [*pages, *super().get_urls()]

    @no_append_slash
    def catch_all_view(self, request: HttpRequest, url: str) -> HttpResponse:
        """Redirect an address of a page that lacks its last slash.

        Raises:
            Http404: for every other address.
        """
        if request.method in ("GET", "HEAD") and is_page(f"{request.path_info}/"):
            return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
        raise Http404

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the sign-in page for the users of another project."""
        return super().login(request, {"has_passwords": True, **(extra_context or {})})

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        checked = strip_nul_from_request(name_missing_permission(view))
        return super().admin_view(without_empty_parameters(in_read_snapshot(checked)), cacheable)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the context that every page shares: sidebar, environment, engine health, time zone."""
        context = super().each_context(request)
        if context["has_permission"]:
            problems, are_new = known_problems(request)
            context |= {
                "health": health_for(request),
                "problems": problems,
                "are_problems_new": are_new,
                "zone_name": zone_of(request),
                "is_compact": is_compact(request),
                "page_tabs": page_tabs(context["available_apps"], request.path),
                "guide_address": guide_address(request.path),
                "is_single_sign_on": is_single_sign_on(request),
                "show_save_and_add_another": False,
                "show_save_and_continue": False,
            }
        return context | {
            "has_own_users": conf.is_server,
            "environment": (conf.environment_name, conf_table.COLORS[conf.environment_color]),
        }

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """Return the sections of the sidebar."""
        apps = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        available: dict[Any, dict] = {model["model"]: model for app in apps for model in app["models"]}
        available |= {page.name: page.sidebar_entry() for page in self.pages if page.is_open_to(request)}
        if "undelivered_messages" in available and not health_for(request).undelivered:
            del available["undelivered_messages"]
        # Every user who may sign in can open the pages without a permission.
        if available.keys() - {page.name for page in self.pages if not page.permission}:
            available["index"] = {"object_name": "index", "admin_url": reverse("admin:index"), "is_exact": True}
        return build_sections(available, request.path, used_entries())

    def page_name(self, opts: Any) -> str:
        """Return the title of a model's list."""
        return page_name(opts)

    def app_index(self, request: HttpRequest, app_label: str, extra_context: Any = None) -> Any:
        """Redirect Django's page of one app to the overview, because the sidebar does not list apps."""
        return HttpResponseRedirect(reverse("admin:index"))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        context = {**self.each_context(request), "title": self.index_title, **(extra_context or {})}
        if may(request.user, "conductor.view_run"):
            context |= overview_context(request)
        request.current_app = self.name
        return TemplateResponse(request, "admin/index.html", context)


def create_site() -> OperatorsSite:
    """Return the site of the server, with pages of its users, or that of another Django project, which has its own."""
    created, admins = OperatorsSite(name="admin"), MODEL_ADMINS
    if conf.is_server:
        from .own_users import USER_ADMINS, USER_PAGES, OwnUsersMixin

        class ServerSite(OwnUsersMixin, OperatorsSite):
            pages = (*PAGES, *USER_PAGES)

        created, admins = ServerSite(name="admin"), MODEL_ADMINS | USER_ADMINS
    for model, screen in admins.items():
        created.register(model, screen)
    return created


site = create_site()
show_model_use()
