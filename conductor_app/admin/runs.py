"""Runs: the list. The page of one run is `run_page.py`."""

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from .. import clock
from ..core.errors import Invalid
from ..insight.cause import failures
from ..insight.selections import search
from ..insight.spans import span
from ..insight.waits import first_line
from ..models import Run
from . import run_page
from .actions import of_runs
from .bulk import bulk_action
from .marks import ago, badge, exact
from .read_only import ReadOnlyAdmin
from .run_filters import DefinitionFilter, StartedFilter, StatusFilter


class RunAdmin(ReadOnlyAdmin):
    """Find any run in seconds, and act on several at once."""

    actions = [bulk_action(action) for action in of_runs()]
    list_display = ("state", "run", "correlation", "started", "took", "trouble")
    list_display_links = None
    list_filter = (StatusFilter, DefinitionFilter, StartedFilter)
    ordering = ("-created_at", "id")
    search_fields = ("id",)
    search_help_text = (
        "A run id or its beginning, a correlation id, the name of a definition, "
        "or a query: status = FAILED AND input.customer.id = 42"
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return Run.objects.light().defer("domains")

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip().replace("\0", "")
        try:
            return (search(queryset, term) if term else queryset), False
        except Invalid as refused:
            self.message_user(request, refused.message, messages.ERROR)
            return queryset.none(), False

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The list, with what its failed runs failed of read at once."""
        listed = super().get_changelist_instance(request)
        failed = failures(listed.result_list)
        for run in listed.result_list:
            run.failure = failed.get(run.pk)
        return listed

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """What the actions on a selection ask for."""
        return any(request.user.has_perm(action.permission) for action in of_runs())

    def get_urls(self) -> list[URLPattern]:
        return [
            path("<path:run_id>/parts/", self.admin_site.admin_view(self.parts), name="run_parts"),
            path("<path:run_id>/raw/<str:field>/", self.admin_site.admin_view(self.raw), name="run_raw"),
            path("<path:run_id>/do/<str:action>/", self.admin_site.admin_view(self.act), name="run_act"),
            *super().get_urls(),
        ]

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        return run_page.page(self, request, object_id)

    def parts(self, request: HttpRequest, run_id: str) -> HttpResponse:
        """The changing parts of the page, or nothing new."""
        return run_page.parts(self, request, run_id)

    def raw(self, request: HttpRequest, run_id: str, field: str) -> HttpResponse:
        """One document as it is."""
        return run_page.raw(self, request, run_id, field)

    def act(self, request: HttpRequest, run_id: str, action: str) -> HttpResponse:
        """A button of the page was pressed."""
        return run_page.act(request, run_id, action)

    @admin.display(description="status")
    def state(self, run: Run) -> SafeString:
        return badge(run.status)

    @admin.display(description="run")
    def run(self, run: Run) -> SafeString:
        return format_html(
            '<a href="{}/change/"><strong>{}</strong> <span class="version">v{}</span></a><br>'
            '<code class="id">{}</code>',
            run.pk,
            run.name,
            run.version,
            run.pk,
        )

    @admin.display(description="correlation id", empty_value="–")
    def correlation(self, run: Run) -> str | None:
        return run.correlation_id or None

    @admin.display(description="started")
    def started(self, run: Run) -> SafeString:
        return ago(run.created_at)

    @admin.display(description="duration")
    def took(self, run: Run) -> SafeString:
        end = clock.now() if run.ended_at is None else run.ended_at
        title = f"ended {exact(run.ended_at)}" if run.ended_at else "still open"
        return format_html('<span class="number" title="{}">{}</span>', title, span(end - run.created_at))

    @admin.display(description="failing task and reason", empty_value="")
    def trouble(self, run: Run) -> SafeString | str:
        if run.is_held:
            return "held by the workflow's limit of runs"
        if run.failure is None:
            return first_line(run.reason, 200)
        return format_html("<code>{}</code> {}", *run.failure)
