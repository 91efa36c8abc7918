"""Attempts: found by id or queue, shown as in the page of their run."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ... import clock
from ...core.states import ATTEMPT
from ...insight.selections import LAST
from ...insight.waits import first_line
from ...models import Attempt
from ..documents import as_file
from ..marks import ago, badge
from ..read_only import ReadOnlyAdmin
from .actions import offered
from .page import address
from .panel import DOCUMENTS, of_attempt, readable


class OpenFilter(admin.SimpleListFilter):
    """What waits, and what is out with workers: both have an index."""

    title, parameter_name = "state", "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("pending", "Waiting in a queue"), ("leased", "With a worker")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() == "pending":
            return queryset.pending()
        return queryset.filter(status="LEASED").exclude(queue="") if self.value() == "leased" else queryset


class AttemptAdmin(ReadOnlyAdmin):
    """Each try at a task."""

    list_display = ("state", "attempt", "queue", "worker", "scheduled", "ended", "trouble")
    list_display_links = None
    list_filter = (OpenFilter,)
    list_select_related = ("task", "run")
    ordering = ("-id",)
    search_fields = ("id",)
    search_help_text = "An attempt id or its beginning (the taskId of Conductor's API), or the name of a queue"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        payloads = [f"run__{name}" for name in ("input", "output", "variables")]
        return Attempt.objects.of_runs().light().defer("input", "output", "task__memo", *payloads)

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        by_id = queryset.filter(id__gte=term, id__lte=term + LAST, id__startswith=term)
        return (by_id if by_id.order_by().exists() else queryset.pending(term)), False

    def get_urls(self) -> list[URLPattern]:
        raw = path("<path:attempt_id>/raw/<str:field>/", self.admin_site.admin_view(self.raw), name="attempt_raw")
        return [raw, *super().get_urls()]

    def change_view(self, request: HttpRequest, object_id: str, *_: object, **__: object) -> HttpResponse:
        attempt, now = self._found(request, object_id), clock.now()
        shown = {
            **self.admin_site.each_context(request),
            "title": f"{attempt.task}, attempt {attempt.number + 1}",
            "opts": Attempt._meta,
            "attempt": attempt,
            "badge": badge(attempt.status),
            "is_open": attempt.status in ATTEMPT.open,
            "run_address": address(attempt.run_id),
            "run_badge": badge(attempt.run.status),
            **offered(attempt.run.status, request.user.has_perm),
            "panel": of_attempt(attempt, [], 0, {}, now),
        }
        return TemplateResponse(request, "admin/conductor/attempt/page.html", shown)

    def raw(self, request: HttpRequest, attempt_id: str, field: str) -> HttpResponse:
        """One payload as it is."""
        attempt = self._found(request, attempt_id)
        if field not in DOCUMENTS:
            raise Http404
        return as_file(getattr(attempt, field), f"{attempt.pk}-{field}")

    def _found(self, request: HttpRequest, attempt_id: str) -> Attempt:
        if not self.has_view_permission(request):
            raise PermissionDenied
        attempt = readable().filter(pk=attempt_id).first()
        if attempt is None:
            raise Http404(f"There is no attempt {attempt_id}.")
        return attempt

    @admin.display(description="status")
    def state(self, attempt: Attempt) -> SafeString:
        return badge(attempt.status)

    @admin.display(description="attempt")
    def attempt(self, attempt: Attempt) -> SafeString:
        run = attempt.run
        return format_html(
            '<a href="{}/change/"><strong>{}</strong> <span class="version">attempt {}</span></a><br>'
            '<a class="quiet" href="{}">{} v{}</a>',
            attempt.pk,
            attempt.task,
            attempt.number + 1,
            address(run.pk),
            run.name,
            run.version,
        )

    @admin.display(description="scheduled")
    def scheduled(self, attempt: Attempt) -> SafeString:
        return ago(attempt.scheduled_at)

    @admin.display(description="ended")
    def ended(self, attempt: Attempt) -> SafeString:
        return ago(attempt.ended_at)

    @admin.display(description="reason")
    def trouble(self, attempt: Attempt) -> str:
        return first_line(attempt.reason, 160)
