"""Pages of schedules: their list, one schedule with its slots and actions, and the list of executed slots."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.timezone import get_current_timezone_name
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import may, shown_to, visible
from ...core.errors import Invalid, RequestRefused
from ...core.failure_grouping import informative_line
from ...definitions.queries import document_to_use, missing_workflow, usable_workflow_names
from ...definitions.schemas import input_schema
from ...runs.pages.view_model import history_strip
from ...runs.queries.recent import recent_runs_of_schedules, run_keys
from ...utils import clock
from ...web.badges import relative_time, render_badge, render_pill
from ...web.documents import render_tree
from ...web.forms import DocumentForm
from ...web.links import render_run_link, run_address
from ...web.pages import (
    BoundedChangeList,
    GrantedRowsAdmin,
    ReadOnlyAdmin,
    moment_column,
    require_permission,
    require_permission_on_any,
    show_refusal,
)
from ...web.preferences import all_zones
from .. import commands, firing
from ..models import SKIPPED, Schedule, ScheduleExecution, shown_state
from ..queries import (
    LATE_MS,
    UpcomingSlot,
    handled_slots,
    jitter_ms,
    missed_times,
    overdue_ms,
    past_slots,
    upcoming_slots,
)
from .form import (
    PRESETS,
    ScheduleClock,
    ScheduleForm,
    apply_preset,
    format_overlap,
    initial_values,
    parse_time,
    posted_clocks,
    posted_values,
    schedule_clocks,
)

VIEW_PERMISSION, ADD_PERMISSION, CHANGE_PERMISSION, DELETE_PERMISSION, RUN_PERMISSION = (
    f"conductor.{verb}_schedule" for verb in ("view", "add", "change", "delete", "execute")
)
MAX_SHOWN = 12
MAX_COUNTED = 1_000
FIRST_EXPRESSION = "0 30 9 * * MON-FRI"
MAIN_FIELDS = ("name", "workflow", "version")
MORE_FIELDS = ("correlation_id", "overlap", "jitter", "catches_up", "window", "starts_at", "ends_at")
"""The fields of the form beside the times, the input and the reason: those of every schedule, and those of some."""


def _resume_schedule(name: str, by: str, reason: str) -> None:
    firing.resume_schedule(name, by)


ACTIONS = {
    "pause": firing.pause_schedule,
    "resume": _resume_schedule,
    "delete": commands.delete_schedule,
}
"""Commands behind the buttons, except running the schedule now."""


def next_times(document: dict[str, Any]) -> list[UpcomingSlot] | None:
    """Return the upcoming slots, or None if the expressions are invalid."""
    try:
        return upcoming_slots(document, clock.now())
    except RequestRefused:
        return None


def _document_of_times(clocks: list[ScheduleClock]) -> dict[str, Any]:
    return {"cronSchedules": [each.document() for each in clocks]}


def _named_workflow(request: HttpRequest, row: Schedule | None) -> str:
    """Return the name of the workflow that the form shows."""
    stored = (row.document.get("startWorkflowRequest") or {}).get("name", "") if row else ""
    return request.POST.get("workflow", stored).strip()


def _input_form(request: HttpRequest, start: Mapping[str, Any]) -> DocumentForm:
    """Return the form of the input of the runs, from what the workflow declares. `start`: the stored request.

    If the user has named another workflow since the form was shown, its fields begin with the defaults.
    """
    name, version = request.POST.get("workflow", start.get("name") or "").strip(), request.POST.get("version", "")
    inline, given = start.get("workflowDef"), start.get("input")
    submitted: QueryDict | None = None
    if request.method == "POST":
        submitted = request.POST if request.POST.get("input_of", name) == name or not name else None
        given = None
    definition = (
        inline if isinstance(inline, Mapping) else document_to_use(name, version or str(start.get("version") or ""))
    )
    return DocumentForm("input", _("Input as JSON"), input_schema(definition or {}), submitted, given=given)


def _parse_span(first: str, last: str) -> tuple[int, int]:
    begin, end = parse_time(first), parse_time(last)
    if begin is None or end is None or begin > end:
        raise Invalid(_("Enter a start and an end; the start must be before the end."))
    return begin, end


MAX_CLOCKS = 3
"""The times of a schedule that the list shows."""
EXECUTION_STATUSES = {"EXECUTED": "COMPLETED", "POLLED": "PENDING", "FAILED": "FAILED", SKIPPED: "SKIPPED"}


class ScheduleList(BoundedChangeList):
    """A page of schedules with the history strips of their runs."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list, now = list(self.result_list), clock.now()
        runs = recent_runs_of_schedules([row.name for row in self.result_list])
        for row in self.result_list:
            row.strip = history_strip(runs.get(row.name, []), now)


class ScheduleAdmin(GrantedRowsAdmin):
    """The list of schedules, and the pages that it links to."""

    list_display = ("schedule", "workflow_name", "cron", "state", "next_run", "last", "history", "overlaps")
    list_display_links = None
    ordering = ("name",)
    search_fields = ("name", "workflow_name")
    search_help_text = gettext_lazy("Part of the name of a schedule or definition")

    class Media:
        css = {"all": ("ops/definitions.css", "ops/chart.css")}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may(request.user, _required_permission(request, ADD_PERMISSION))

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ScheduleList]:
        return ScheduleList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Schedule]:
        slots = ScheduleExecution.objects.filter(schedule_name=OuterRef("name")).order_by("-slot_at")
        last = {
            "last_slot_at": Subquery(slots.values("slot_at")[:1]),
            "last_state": Subquery(slots.values("state")[:1]),
            "last_reason": Subquery(slots.values("reason")[:1]),
        }
        return super().get_queryset(request).annotate(**last)

    @admin.display(description=gettext_lazy("name"))
    def schedule(self, row: Schedule) -> SafeString:
        return format_html('<a href="{}/change/"><strong>{}</strong></a>', row.pk, row.name)

    @admin.display(description=gettext_lazy("times"))
    def cron(self, row: Schedule) -> SafeString:
        clocks = schedule_clocks(row.document)
        lines = format_html_join(mark_safe("<br>"), "{}", ((_render_clock(each),) for each in clocks[:MAX_CLOCKS]))
        return format_html("{}<br>…", lines) if len(clocks) > MAX_CLOCKS else lines

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: Schedule) -> SafeString:
        return render_badge("PAUSED") if row.is_paused else render_pill("succeeded", _("Active"))

    @admin.display(description=gettext_lazy("next run"))
    def next_run(self, row: Schedule) -> SafeString:
        if row.next_run_at is None or clock.now() - row.next_run_at < LATE_MS:
            return relative_time(row.next_run_at)
        return format_html("{} {}", relative_time(row.next_run_at), render_pill("failed", _("late"), "late"))

    @admin.display(description=gettext_lazy("last run"))
    def last(self, row: Schedule) -> SafeString:
        if row.last_slot_at is None:
            return relative_time(None)
        if row.last_state == "EXECUTED":
            return relative_time(row.last_slot_at)
        badge = render_badge(EXECUTION_STATUSES[shown_state(row.last_state, row.last_reason)])
        return format_html('{} <span title="{}">{}</span>', relative_time(row.last_slot_at), row.last_reason, badge)

    @admin.display(description=gettext_lazy("last runs"))
    def history(self, row: Schedule) -> SafeString:
        return row.strip

    @admin.display(description=gettext_lazy("overlap policy"))
    def overlaps(self, row: Schedule) -> str:
        return format_overlap(row)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:pk>/edit/", view(self.edit), name="schedule_edit"),
            path("<int:pk>/do/<str:act>/", view(self.act), name="schedule_act"),
            path("<int:pk>/backfill/", view(self.backfill), name="schedule_backfill"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        require_permission_on_any(request, _required_permission(request, ADD_PERMISSION))
        return self._handle_form(request, None)

    def edit(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Edit an existing schedule."""
        return self._handle_form(request, self._get_schedule_or_404(request, pk, CHANGE_PERMISSION))

    def _handle_form(self, request: HttpRequest, row: Schedule | None) -> HttpResponse:
        before = row.document if row else {}
        first_clock = ScheduleClock(FIRST_EXPRESSION, get_current_timezone_name())
        initial: dict[str, Any] = (
            initial_values(row.name, before) if row else {"clocks": [first_clock], "overlap": "ALLOW"}
        )
        input_form = _input_form(request, before.get("startWorkflowRequest") or {})
        is_edited = "preset" in request.POST or request.POST.get("step") == "add" or input_form.has_switched
        if request.method == "POST" and is_edited:
            return self._change_rows(request, row, input_form)
        is_inline = bool((before.get("startWorkflowRequest") or {}).get("workflowDef"))
        form = ScheduleForm(request.POST or None, initial=initial, has_inline_workflow=is_inline)
        document = before
        is_valid = input_form.is_valid() and form.is_valid()
        if request.method == "POST" and is_valid:
            document = form.document(before, input_form.document)
            if row is not None and document["name"] != row.name:
                form.add_error("name", _("The name %(name)s cannot be changed.") % {"name": row.name})
            elif request.POST.get("step") != "show" and self._save(request, form, document, row):
                saved = Schedule.objects.get(name=document["name"])
                return HttpResponseRedirect(reverse("admin:conductor_schedule_change", args=[saved.pk]))
        clocks = posted_clocks(request.POST) if form.is_bound else initial["clocks"]
        if not document or (form.is_bound and not is_valid):
            document = _document_of_times(clocks)
        return self._form_page(request, row, form, clocks, document, input_form)

    def _change_rows(self, request: HttpRequest, row: Schedule | None, input_form: DocumentForm) -> HttpResponse:
        """Show the form again, without errors, after a preset, with another row or another form of the input.

        Nothing is saved.
        """
        clocks = posted_clocks(request.POST)
        if preset := request.POST.get("preset", ""):
            clocks = apply_preset(clocks, preset[:500])
        document = _document_of_times(clocks)
        if request.POST.get("step") == "add":
            zone_id = clocks[-1].zone_id if clocks else "UTC"
            clocks.append(ScheduleClock("", zone_id))
        form = ScheduleForm(initial=posted_values(request.POST) | {"clocks": clocks})
        return self._form_page(request, row, form, clocks, document, input_form)

    def _form_page(
        self,
        request: HttpRequest,
        row: Schedule | None,
        form: ScheduleForm,
        clocks: list[ScheduleClock],
        document: dict[str, Any],
        input_form: DocumentForm,
    ) -> HttpResponse:
        extra_context = {
            "form": form,
            "input": input_form,
            "named_workflow": _named_workflow(request, row),
            "main_fields": [form[name] for name in MAIN_FIELDS],
            "more_fields": [form[name] for name in MORE_FIELDS],
            "has_more": bool(form.errors.keys() & set(MORE_FIELDS)),
            "row": row,
            "times": next_times(document) if document else None,
            "names": usable_workflow_names(),
            "clock_rows": clocks,
            "presets": PRESETS,
            "zones": sorted(all_zones()),
            "jitter_ms": jitter_ms(document) if document else 0,
        }
        title = _("Edit %(name)s") % {"name": row.name} if row else _("New schedule")
        return self._render_page(request, "edit", title, **extra_context)

    def _save(self, request: HttpRequest, form: ScheduleForm, document: dict[str, Any], row: Schedule | None) -> bool:
        if row is None:
            require_permission(request, _required_permission(request, ADD_PERMISSION), Schedule(name=document["name"]))
        if row is None and Schedule.objects.filter(name=document["name"]).exists():
            form.add_error("name", _("A schedule with this name already exists."))
            return False
        pause = {"paused": row.is_paused, "pausedReason": row.paused_reason} if row else {}
        try:
            commands.save_schedule({**document, **pause}, request.user.get_username(), form.cleaned_data["reason"])
        except RequestRefused as refused:
            form.add_error(None, refused.message)
            return False
        messages.success(request, _("Schedule saved."))
        return True

    def act(self, request: HttpRequest, pk: int, act: str) -> HttpResponse:
        """Handle a button of the page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        permission = {"run": RUN_PERMISSION, "delete": _required_permission(request, DELETE_PERMISSION)}.get(act)
        row, by, reason = (
            self._get_schedule_or_404(request, pk, permission or CHANGE_PERMISSION),
            request.user.get_username(),
            request.POST.get("reason", "").strip(),
        )
        try:
            if act == "run":
                run_id = commands.run_now(row.name, by, reason)
                messages.success(request, _("Run started."))
                return HttpResponseRedirect(run_address(run_id))
            if act not in ACTIONS:
                raise Http404
            ACTIONS[act](row.name, by, reason)
            messages.success(request, _("%(name)s: done.") % {"name": row.name})
        except RequestRefused as refused:
            show_refusal(request, refused)
        there = "admin:conductor_schedule_changelist" if act == "delete" else "admin:conductor_schedule_change"
        return HttpResponseRedirect(reverse(there, args=[] if act == "delete" else [pk]))

    def backfill(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Preview the missed slots of a period, or start their runs if the form confirms the preview."""
        row = self._get_schedule_or_404(request, pk, RUN_PERMISSION)
        first, last, fault = request.POST.get("first", ""), request.POST.get("last", ""), ""
        slots: list[int] | None = None
        if request.method == "POST":
            try:
                begin, end = _parse_span(first, last)
                if request.POST.get("step") == "run":
                    by, reason = request.user.get_username(), request.POST.get("reason", "").strip()
                    count = commands.backfill(row.name, begin, end, by, reason)
                    message = ngettext("%(count)s run scheduled.", "%(count)s runs scheduled.", count)
                    messages.success(request, message % {"count": count})
                    return HttpResponseRedirect(reverse("admin:conductor_schedule_change", args=[pk]))
                slots = missed_times(row.document, begin, min(end, clock.now()), MAX_COUNTED + 1)
            except RequestRefused as refused:
                fault = refused.message
        ran = handled_slots(row.name, slots or ())
        extra_context = {
            "row": row,
            "ran": ran,
            "to_run": len(set(slots or ()) - ran),
            "first": first,
            "last": last,
            "slots": slots,
            "fault": fault,
            "most": MAX_SHOWN,
            "counted": MAX_COUNTED,
        }
        return self._render_page(request, "backfill", _("Backfill %(name)s") % {"name": row.name}, **extra_context)

    def change_view(self, request: HttpRequest, object_id: str, *more: object, **others: object) -> HttpResponse:
        row = self._get_schedule_or_404(request, object_id)
        start = row.document["startWorkflowRequest"]
        extra_context = {
            "row": row,
            "tree": render_tree(row.document),
            "times": None if row.is_paused else next_times(row.document),
            "clocks": schedule_clocks(row.document),
            "overlap": format_overlap(row),
            "slots": past_slots(row.name),
            "strip": history_strip(
                recent_runs_of_schedules([row.name]).get(row.name, []), clock.now(), is_in_list=False
            ),
            "jitter_ms": jitter_ms(row.document),
            "late_after_ms": jitter_ms(row.document) + LATE_MS,
            "overdue_ms": overdue_ms(row, clock.now()),
            "unknown": _("unknown"),
            "missing_workflow": ""
            if start.get("workflowDef")
            else missing_workflow(start["name"], start.get("version")),
            "may_edit": may(request.user, CHANGE_PERMISSION, row),
            "may_delete": may(request.user, _required_permission(request, DELETE_PERMISSION), row),
            "may_run": may(request.user, RUN_PERMISSION, row),
        }
        return self._render_page(request, "page", row.name, **extra_context)

    def _get_schedule_or_404(self, request: HttpRequest, pk: int | str, permission: str = "") -> Schedule:
        """Return a schedule. `permission`: what the user needs on it, besides the permission to view it."""
        for each in filter(None, (permission, VIEW_PERMISSION)):
            require_permission_on_any(request, each)
        rows = visible(Schedule.objects.all())
        row = rows.filter(pk=pk).first() if str(pk).isdecimal() and len(str(pk)) < 19 else None
        if row is None:
            raise Http404(_("No such schedule."))
        if permission:
            require_permission(request, permission, row)
        return row

    def _render_page(self, request: HttpRequest, name: str, title: str, **extra_context: Any) -> TemplateResponse:
        context = {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **extra_context}
        context["csp_nonce"] = getattr(request, "csp_nonce", "")
        return TemplateResponse(request, f"ops/schedules/{name}.html", context)


def _required_permission(request: HttpRequest, permission: str) -> str:
    """Return the permission to add or delete a schedule: that to change all schedules is sufficient."""
    return CHANGE_PERMISSION if request.user.has_perm(CHANGE_PERMISSION) else permission


def _render_clock(clock: ScheduleClock) -> SafeString:
    words = clock.words
    text = words or format_html("<code>{}</code>", informative_line(clock.expression, 200))
    return format_html(
        '<span title="{}">{}</span> <span class="muted">{}</span>', clock.expression, text, clock.zone_id
    )


class ScheduleExecutionList(BoundedChangeList):
    """The list of executed slots, with the keys of their runs."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        keys = run_keys(row.run_id for row in self.result_list)
        for row in self.result_list:
            row.run_keys = keys


class ScheduleExecutionAdmin(ReadOnlyAdmin):
    """Executed slots and the runs that they started."""

    list_display = ("schedule_name", "slot", "state_badge", "run", "error")
    list_display_links = None
    ordering = ("-slot_at", "id")
    search_fields = ("=schedule_name",)
    search_help_text = gettext_lazy("Exact name of a schedule")

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[ScheduleExecutionList]:
        return ScheduleExecutionList

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScheduleExecution]:
        rows = super().get_queryset(request).defer("request", "trace")
        return shown_to(request.user, "conductor.view_scheduleexecution", rows)

    def has_view_permission(self, request: HttpRequest, obj: ScheduleExecution | None = None) -> bool:
        return super().has_view_permission(request, obj) or may(request.user, VIEW_PERMISSION, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    slot = moment_column("slot_at", gettext_lazy("slot"))

    @admin.display(description=gettext_lazy("state"))
    def state_badge(self, row: ScheduleExecution) -> SafeString:
        return render_badge(EXECUTION_STATUSES.get(row.shown_state, row.state))

    @admin.display(description=gettext_lazy("run"))
    def run(self, row: ScheduleExecution) -> SafeString | str:
        if not row.run_id:
            return ""
        return render_run_link(row.run_id, row.run_keys)

    @admin.display(description=gettext_lazy("reason"))
    def error(self, row: ScheduleExecution) -> str:
        return informative_line(row.reason, 160)
