"""Attempts: search by id or queue, and the page of one attempt."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.errors import RequestRefused
from ...core.failure_grouping import informative_line
from ...core.states import ATTEMPT
from ...db import keyset_pages
from ...db.fields import LAST_ID_PART
from ...tasks.pages.actions import PERMISSION, TASK_ACTIONS, task_actions
from ...tasks.pages.task_panel import DOCUMENTS, attempt_panel, attempts_for_panel, log_text_response
from ...utils import clock
from ...web.badges import relative_time, render_badge
from ...web.documents import json_file_response
from ...web.links import RunPageQuery, run_address
from ...web.pages import ReadOnlyAdmin, ServerAwareChangeList, require_permission, show_refusal
from ..models import Attempt
from .actions import available_actions


class AttemptStateFilter(admin.SimpleListFilter):
    """Filter by state. The database has an index for each choice."""

    title, parameter_name = gettext_lazy("state"), "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [("pending", _("Queued")), ("leased", _("In progress")), ("retrying", _("Retrying"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() == "pending":
            return queryset.pending()
        if self.value() == "retrying":
            return queryset.retrying()
        return queryset.filter(status="LEASED").exclude(queue="") if self.value() == "leased" else queryset


class AttemptList(ServerAwareChangeList):
    """Keyset pagination: a page starts where the previous one ended, so its cost does not depend on the rows before."""

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Return the filters without the position of the page."""
        return {
            name: value for name, value in super().get_filters_params(params).items() if name not in PAGE_PARAMETERS
        }

    def get_results(self, request: HttpRequest) -> None:
        after, before = (request.GET.get(name, "").replace("\0", "")[:80] for name in ("after", "before"))
        rows = self.queryset.order_by()
        self.current_page = keyset_pages.keyset_page(rows, keyset_pages.SortById(), after, before)
        self.result_list, (self.result_count, self.is_capped) = (
            self.current_page.rows,
            keyset_pages.count_rows(rows, self.current_page),
        )
        self.show_full_result_count, self.show_admin_actions = False, False
        self.full_result_count, self.can_show_all, self.multi_page = self.result_count, False, True
        self.paginator = self.model_admin.get_paginator(request, self.queryset, 50)

    def page_addresses(self) -> dict[str, Any]:
        """Return the addresses of other pages."""
        before, after = self.current_page.before, self.current_page.after
        return {
            "newer": self.get_query_string({"before": before}, ["after"]) if before else "",
            "older": self.get_query_string({"after": after}, ["before"]) if after else "",
            "first": self.get_query_string(remove=PAGE_PARAMETERS) if before else "",
        }


PAGE_PARAMETERS = ("after", "before")


class AttemptAdmin(ReadOnlyAdmin):
    """Attempts of all tasks."""

    list_display = ("state", "attempt", "queue", "worker", "scheduled", "ended", "reason_text")
    list_display_links = None
    list_filter = (AttemptStateFilter,)
    list_select_related = ("task", "run")
    ordering = ("-id",)
    search_fields = ("id",)
    search_help_text = gettext_lazy("Attempt id or its beginning (taskId in Conductor's API), or the name of a queue")

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ChangeList]:
        return AttemptList

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data and "cl" in response.context_data:
            response.context_data |= response.context_data["cl"].page_addresses()
        return response

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attempt]:
        payloads = [f"run__{name}" for name in ("input", "output", "variables")]
        return Attempt.objects.of_runs().defer_payloads().defer("input", "output", "task__step_state", *payloads)

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        by_id = queryset.filter(id__gte=term, id__lte=term + LAST_ID_PART, id__startswith=term)
        return (by_id if by_id.order_by().exists() else queryset.pending(term)), False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<path:attempt_id>/raw/<str:field>/", view(self.raw), name="attempt_raw"),
            path("<path:attempt_id>/log/", view(self.log), name="attempt_log"),
            path("<path:attempt_id>/do/<str:name>/", view(self.act), name="task_act"),
            *super().get_urls(),
        ]

    def change_view(self, request: HttpRequest, object_id: str, *args: object, **more: object) -> HttpResponse:
        attempt, now = self._get_attempt_or_404(request, object_id), clock.now()
        context = {
            **self.admin_site.each_context(request),
            "title": _("%(task)s, attempt %(number)s") % {"task": attempt.task, "number": attempt.number + 1},
            "opts": Attempt._meta,
            "attempt": attempt,
            "badge": render_badge(attempt.status),
            "is_open": attempt.status in ATTEMPT.open,
            "run_address": run_address(attempt.run_id),
            "run_badge": render_badge(attempt.run.status),
            **available_actions(attempt.run.status, request.user.has_perm),
            "panel": attempt_panel(attempt, [], 0, {}, now, RunPageQuery(request.GET)),
            "task_acts": task_actions(attempt, now, request.user.has_perm),
        }
        return TemplateResponse(request, "admin/conductor/attempt/page.html", context)

    def raw(self, request: HttpRequest, attempt_id: str, field: str) -> HttpResponse:
        """Download one payload as JSON.

        Raises:
            Http404: when there is no such payload.
        """
        attempt = self._get_attempt_or_404(request, attempt_id)
        if field not in DOCUMENTS:
            raise Http404
        return json_file_response(getattr(attempt, field), f"{attempt.pk}-{field}")

    def log(self, request: HttpRequest, attempt_id: str) -> StreamingHttpResponse:
        """Download the complete log of the attempt."""
        return log_text_response(self._get_attempt_or_404(request, attempt_id))

    def act(self, request: HttpRequest, attempt_id: str, name: str) -> HttpResponse:
        """Handle a button of a task and redirect to the page that the button was on.

        Raises:
            Http404: when the action is unknown.
        """
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        act = TASK_ACTIONS.get(name)
        if act is None:
            raise Http404
        require_permission(request, PERMISSION)
        attempt = self._get_attempt_or_404(request, attempt_id)
        reason = request.POST.get("reason", "").strip()
        try:
            act.command(attempt, request.POST, request.user.get_username(), reason)
            messages.success(request, str(act.done))
        except RequestRefused as refused:
            show_refusal(request, refused, (_("Explain"), reverse("admin:why_waiting", args=[attempt.pk])))
        return HttpResponseRedirect(_return_address(attempt, request.POST.get("back", "")))

    def _get_attempt_or_404(self, request: HttpRequest, attempt_id: str) -> Attempt:
        if not self.has_view_permission(request):
            raise PermissionDenied
        attempt = attempts_for_panel().filter(pk=attempt_id).first()
        if attempt is None:
            raise Http404(_("No such attempt: %(id)s.") % {"id": attempt_id})
        return attempt

    @admin.display(description=gettext_lazy("status"))
    def state(self, attempt: Attempt) -> SafeString:
        return render_badge(attempt.status)

    @admin.display(description=gettext_lazy("attempt"))
    def attempt(self, attempt: Attempt) -> SafeString:
        run = attempt.run
        return format_html(
            '<a href="{}/change/"><strong>{}</strong> <span class="version">{}</span></a><br>'
            '<a class="muted" href="{}">{} v{}</a>',
            attempt.pk,
            attempt.task,
            _("attempt %(number)s") % {"number": attempt.number + 1},
            run_address(run.pk),
            run.name,
            run.version,
        )

    @admin.display(description=gettext_lazy("scheduled"))
    def scheduled(self, attempt: Attempt) -> SafeString:
        return relative_time(attempt.scheduled_at)

    @admin.display(description=gettext_lazy("ended"))
    def ended(self, attempt: Attempt) -> SafeString:
        return relative_time(attempt.ended_at)

    @admin.display(description=gettext_lazy("reason"))
    def reason_text(self, attempt: Attempt) -> str:
        return informative_line(attempt.reason, 160)


def _return_address(attempt: Attempt, to: str) -> str:
    """Return the page that the button was on: the queue position, the attempt, or the run with the task selected."""
    if to in RETURN_PAGES:
        return reverse(RETURN_PAGES[to], args=[attempt.pk])
    return f"{run_address(attempt.run_id)}?{urlencode({'task': str(attempt.task)})}"


RETURN_PAGES = {"why_waiting": "admin:why_waiting", "attempt": "admin:conductor_attempt_change"}
