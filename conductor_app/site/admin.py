"""The AdminSite of the operators: registered models and pages, and the context that every page shares."""

from collections.abc import Callable
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group, User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import Resolver404, URLPattern, URLResolver, path, resolve, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.common import no_append_slash

from .. import conf
from ..access.session_limits import is_single_sign_on
from ..insight.standalone.taskcluster_use import is_taskcluster_used
from ..models import (
    AccessKey,
    Application,
    Artifact,
    Attempt,
    AuditEntry,
    Client,
    EventHandler,
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
from .access.access_keys import AccessKeyAdmin
from .access.applications import ApplicationAdmin, GrantAdmin
from .access.caller_quotas import QuotasPage
from .access.clients import ClientAdmin
from .access.roles import ScopeRoleAdmin
from .access.secrets_and_variables import SecretAdmin, VariableAdmin
from .access.users_and_groups import AuditedGroupAdmin, AuditedUserAdmin
from .ai.budgets_page import BudgetsPage
from .ai.integration_pages import IntegrationModelPage, IntegrationPage, IntegrationsPage, NewIntegrationPage
from .ai.prompt_pages import NewPromptPage, PromptPage, PromptsPage
from .ai.usage_page import UsagePage
from .ai.vector_indexes_page import VectorIndexesPage
from .audit_log import AuditAdmin
from .bulk.bulk_operation_pages import BulkExportPage, BulkOperationPage, BulkPage
from .bulk.bulk_plan import BulkPlanPage
from .bulk.planner import PlannerPage
from .choices import is_compact
from .clean_addresses import without_empty_parameters
from .definitions.definition_history import DefinitionHistoryPage
from .definitions.drift_page import DriftExportPage, DriftPage
from .definitions.form_templates import FormTemplatePage, FormTemplatesPage, NewFormTemplatePage
from .definitions.task_definitions import TaskDefinitionAdmin
from .definitions.workflow_definitions import WorkflowDefinitionAdmin
from .error_messages import name_missing_permission
from .events.event_handlers import EventHandlerAdmin
from .events.event_pages import EventPage, EventsPage
from .events.event_replays import ReplayPage
from .events.event_sources import SourcesPage
from .events.webhooks import NewWebhookPage, WebhookPage, WebhooksPage
from .failures.failure_groups import FailureGroupPage, FailuresPage
from .form_parsing import strip_nul_from_request
from .monitoring.alert_targets import AlertTargetPage, AlertTargetsPage, NewAlertTargetPage
from .monitoring.background_jobs_page import BackgroundJobsPage
from .monitoring.first_steps import FirstStepsPage
from .monitoring.overview import AttentionPage, overview_context
from .monitoring.overview_tiles import OverviewActivityPage
from .monitoring.saved_views import AlertPage, TilesPage, ViewPage, ViewsPage
from .monitoring.system_page import SystemPage
from .monitoring.undelivered_messages import UndeliveredMessagePage, UndeliveredMessagesPage
from .pages import Page
from .palette import PalettePage
from .preferences import PreferencesPage
from .queues.queue_list import QueuesPage
from .queues.queue_page import QueuePage
from .queues.why_waiting import WhyWaitingPage
from .queues.worker_list import WorkersPage
from .queues.worker_page import WorkerPage
from .runs.retention import RetentionPage
from .runs.run_comparison import ComparePage
from .runs.run_list import RunAdmin
from .schedules.periodic_tasks import SCHEDULES
from .schedules.schedule_calendar import CalendarPage
from .schedules.schedule_lists import ScheduleAdmin, ScheduleExecutionAdmin
from .sidebar import build_sections, page_tabs
from .sign_in.openid import callback as openid_callback
from .sign_in.openid import start as openid_start
from .sign_in.second_factor_setup import SecondFactorPage
from .sign_in.sign_in_pages import SignInView, second_factor, second_factor_required
from .snapshot_pages import in_read_snapshot
from .standalone.artifacts import ArtifactAdmin
from .standalone.group_list import GroupAdmin
from .standalone.task_list import StandaloneTaskAdmin
from .status_bar import StatusBarPage, health_for
from .tasks.attempts import AttemptAdmin
from .tasks.human_task_list import HumanTasksPage
from .tasks.human_task_page import HumanTaskAnswerPage
from .user_locale import zone_of

OBJECT_PAGES: tuple[Page, ...] = (
    PlannerPage(),
    FailuresPage(),
    FailureGroupPage(),
    BulkPlanPage(),
    BulkPage(),
    BulkExportPage(),
    BulkOperationPage(),
    ComparePage(),
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
    AlertTargetsPage(),
    NewAlertTargetPage(),
    AlertTargetPage(),
    CalendarPage(),
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
    BackgroundJobsPage(),
    DriftPage(),
    IntegrationsPage(),
    PromptsPage(),
    UsagePage(),
    BudgetsPage(),
    VectorIndexesPage(),
    PalettePage(),
    PreferencesPage(),
    SecondFactorPage(),
    StatusBarPage(),
    *OBJECT_PAGES,
)
MODEL_ADMINS = {
    Run: RunAdmin,
    Attempt: AttemptAdmin,
    WorkflowDefinition: WorkflowDefinitionAdmin,
    TaskDefinition: TaskDefinitionAdmin,
    EventHandler: EventHandlerAdmin,
    Schedule: ScheduleAdmin,
    ScheduleExecution: ScheduleExecutionAdmin,
    AuditEntry: AuditAdmin,
    Artifact: ArtifactAdmin,
    Secret: SecretAdmin,
    StandaloneTask: StandaloneTaskAdmin,
    TaskGroup: GroupAdmin,
    Variable: VariableAdmin,
    Application: ApplicationAdmin,
    AccessKey: AccessKeyAdmin,
    Grant: GrantAdmin,
    Client: ClientAdmin,
    ScopeRole: ScopeRoleAdmin,
    User: AuditedUserAdmin,
    Group: AuditedGroupAdmin,
    **SCHEDULES,
}


UNRESTRICTED_PAGES = {page.name for page in PAGES if not page.permission}
"""Pages that every user who may sign in can open."""


def sign_in_urls() -> list[URLPattern]:
    """Return the pages that a user opens before being signed in."""
    return [
        path("login/code/", never_cache(second_factor), name="sign_in_code"),
        path("login/setup/", never_cache(second_factor_required), name="sign_in_setup"),
        path("login/openid/", never_cache(openid_start), name="openid_start"),
        path("login/openid/callback/", never_cache(openid_callback), name="openid_callback"),
    ]


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

    def get_urls(self) -> list[URLPattern | URLResolver]:
        pages = (line for page in PAGES for line in page.urls(self))
        return [*sign_in_urls(), *pages, *super().get_urls()]

    @no_append_slash
    def catch_all_view(self, request: HttpRequest, url: str) -> HttpResponseBase:
        """Redirect an address of a page that lacks its last slash.

        Raises:
            Http404: for every other address.
        """
        if request.method in ("GET", "HEAD") and is_page(f"{request.path_info}/"):
            return HttpResponsePermanentRedirect(request.get_full_path(force_append_slash=True))
        raise Http404

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        """Show the sign-in page, or the overview to users who are signed in."""
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        request.current_app = self.name
        return strip_nul_from_request(SignInView.as_view(extra_context=extra_context))(request)

    def admin_view(self, view: Callable[..., HttpResponse], cacheable: bool = False) -> Callable[..., HttpResponse]:
        checked = strip_nul_from_request(name_missing_permission(view))
        return super().admin_view(without_empty_parameters(in_read_snapshot(checked)), cacheable)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the context that every page shares: sidebar, environment, engine health, time zone."""
        context = super().each_context(request)
        if context["has_permission"]:
            context |= {
                "health": health_for(request),
                "zone_name": zone_of(request),
                "is_compact": is_compact(request),
                "page_tabs": page_tabs(context["available_apps"], request.path),
                "is_single_sign_on": is_single_sign_on(request),
            }
        return context | {"environment": (conf.environment_name, conf.COLORS[conf.environment_color])}

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """Return the sections of the sidebar."""
        apps = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        available: dict[Any, dict] = {model["model"]: model for app in apps for model in app["models"]}
        available |= {page.name: page.sidebar_entry() for page in PAGES if page.is_open_to(request)}
        if available.keys() - UNRESTRICTED_PAGES:
            available["index"] = {"object_name": "index", "admin_url": reverse("admin:index"), "is_exact": True}
        return build_sections(available, request.path, is_taskcluster_used())

    def app_index(self, request: HttpRequest, app_label: str, extra_context: Any = None) -> HttpResponse:
        """Redirect Django's page of one app to the overview, because the sidebar does not list apps."""
        return HttpResponseRedirect(reverse("admin:index"))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        context = {**self.each_context(request), "title": self.index_title, **(extra_context or {})}
        if request.user.has_perm("conductor.view_run"):
            context |= overview_context(context["health"])
        request.current_app = self.name
        return TemplateResponse(request, "admin/index.html", context)


site = OperatorsSite(name="admin")
for model, screen in MODEL_ADMINS.items():
    site.register(model, screen)
