"""Pages of a schedule: upcoming and past slots, pause, immediate run, backfill, editor."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ... import clock
from ...core.errors import Invalid, RequestRefused
from ...engine import schedules
from ...insight.runs.recent_runs import recent_runs_of_schedules
from ...insight.schedules.schedule_forecast import (
    LATE_MS,
    UpcomingSlot,
    handled_slots,
    jitter_ms,
    missed_times,
    overdue_ms,
    past_slots,
    upcoming_slots,
)
from ...models import Schedule
from ..error_messages import require_permission, show_refusal
from ..json_tree import render_tree
from ..runs.history_strip import history_strip
from ..runs.run_page import run_address
from ..user_locale import all_zones
from .schedule_clocks import PRESETS, ScheduleClock, apply_preset, posted_clocks, schedule_clocks
from .schedule_form import (
    ScheduleForm,
    format_overlap,
    initial_values,
    parse_time,
    posted_values,
    workflow_names,
)

CHANGE_PERMISSION, RUN_PERMISSION = "conductor.change_schedule", "conductor.execute_schedule"
MAX_SHOWN = 12
MAX_COUNTED = 1_000
FIRST_CLOCK = ScheduleClock("0 30 9 * * MON-FRI")


class SchedulePages:
    """Pages that the list of schedules links to."""

    class Media:
        css = {"all": ("ops/definitions.css", "ops/chart.css")}

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:pk>/edit/", view(self.edit), name="schedule_edit"),
            path("<int:pk>/do/<str:act>/", view(self.act), name="schedule_act"),
            path("<int:pk>/backfill/", view(self.backfill), name="schedule_backfill"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        require_permission(request, CHANGE_PERMISSION)
        return self._handle_form(request, None)

    def edit(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Edit an existing schedule."""
        require_permission(request, CHANGE_PERMISSION)
        return self._handle_form(request, self._get_schedule_or_404(request, pk))

    def _handle_form(self, request: HttpRequest, row: Schedule | None) -> HttpResponse:
        before = row.document if row else {}
        initial = (
            initial_values(row.name, before) if row else {"clocks": [FIRST_CLOCK], "input": "{}", "overlap": "ALLOW"}
        )
        if request.method == "POST" and ("preset" in request.POST or request.POST.get("step") == "add"):
            return self._change_rows(request, row)
        form = ScheduleForm(request.POST or None, initial=initial)
        document = before
        if request.method == "POST" and form.is_valid():
            document = form.document(before)
            if row is not None and document["name"] != row.name:
                form.add_error("name", _("The name %(name)s cannot be changed.") % {"name": row.name})
            elif request.POST.get("step") != "show" and self._save(request, form, document, row):
                saved = Schedule.objects.get(name=document["name"])
                return HttpResponseRedirect(reverse("admin:conductor_schedule_change", args=[saved.pk]))
        clocks = posted_clocks(request.POST) if form.is_bound else initial["clocks"]
        return self._form_page(request, row, form, clocks, document if form.is_valid() or not form.is_bound else {})

    def _change_rows(self, request: HttpRequest, row: Schedule | None) -> HttpResponse:
        """Show the form again, without errors, after a preset or with another row. Nothing is saved."""
        clocks = posted_clocks(request.POST)
        if preset := request.POST.get("preset", ""):
            clocks = apply_preset(clocks, preset[:500])
        document = {"cronSchedules": [each.document() for each in clocks]}
        if not preset:
            zone_id = clocks[-1].zone_id if clocks else "UTC"
            clocks.append(ScheduleClock("", zone_id))
        form = ScheduleForm(initial=posted_values(request.POST) | {"clocks": clocks})
        return self._form_page(request, row, form, clocks, document)

    def _form_page(
        self,
        request: HttpRequest,
        row: Schedule | None,
        form: ScheduleForm,
        clocks: list[ScheduleClock],
        document: dict[str, Any],
    ) -> HttpResponse:
        extra_context = {
            "form": form,
            "row": row,
            "times": next_times(document) if document else None,
            "names": workflow_names(),
            "clock_rows": clocks,
            "presets": PRESETS,
            "zones": sorted(all_zones()),
            "jitter_ms": jitter_ms(document) if document else 0,
        }
        title = _("Edit %(name)s") % {"name": row.name} if row else _("New schedule")
        return self._render_page(request, "edit", title, **extra_context)

    def _save(self, request: HttpRequest, form: ScheduleForm, document: dict[str, Any], row: Schedule | None) -> bool:
        if row is None and Schedule.objects.filter(name=document["name"]).exists():
            form.add_error("name", _("A schedule with this name already exists."))
            return False
        pause = {"paused": row.is_paused, "pausedReason": row.paused_reason} if row else {}
        try:
            schedules.save_schedule({**document, **pause}, request.user.get_username(), form.cleaned_data["reason"])
        except RequestRefused as refused:
            form.add_error(None, refused.message)
            return False
        messages.success(request, _("Schedule saved."))
        return True

    def act(self, request: HttpRequest, pk: int, act: str) -> HttpResponse:
        """Handle a button of the page.

        Raises:
            Http404: when the action is unknown.
        """
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        require_permission(request, RUN_PERMISSION if act == "run" else CHANGE_PERMISSION)
        row, by, reason = (
            self._get_schedule_or_404(request, pk),
            request.user.get_username(),
            request.POST.get("reason", "").strip(),
        )
        try:
            if act == "run":
                run_id = schedules.run_now(row.name, by, reason)
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
        require_permission(request, RUN_PERMISSION)
        row = self._get_schedule_or_404(request, pk)
        first, last, fault = request.POST.get("first", ""), request.POST.get("last", ""), ""
        slots: list[int] | None = None
        if request.method == "POST":
            try:
                begin, end = _parse_span(first, last)
                if request.POST.get("step") == "run":
                    by, reason = request.user.get_username(), request.POST.get("reason", "").strip()
                    count = schedules.backfill(row.name, begin, end, by, reason)
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
            "may_edit": request.user.has_perm(CHANGE_PERMISSION),
            "may_run": request.user.has_perm(RUN_PERMISSION),
        }
        return self._render_page(request, "page", row.name, **extra_context)

    def _get_schedule_or_404(self, request: HttpRequest, pk: object) -> Schedule:
        require_permission(request, "conductor.view_schedule")
        row = Schedule.objects.filter(pk=pk).first() if str(pk).isdecimal() and len(str(pk)) < 19 else None
        if row is None:
            raise Http404(_("No such schedule."))
        return row

    def _render_page(self, request: HttpRequest, name: str, title: str, **extra_context: Any) -> TemplateResponse:
        context = {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **extra_context}
        context["csp_nonce"] = request.csp_nonce
        return TemplateResponse(request, f"ops/schedule/{name}.html", context)


def _resume_schedule(name: str, by: str, reason: str) -> None:
    schedules.resume_schedule(name, by)


ACTIONS = {"pause": schedules.pause_schedule, "resume": _resume_schedule, "delete": schedules.delete_schedule}
"""Commands behind the buttons, except running the schedule now."""


def next_times(document: dict[str, Any]) -> list[UpcomingSlot] | None:
    """Return the upcoming slots, or None if the expressions are invalid."""
    try:
        return upcoming_slots(document, clock.now())
    except RequestRefused:
        return None


def _parse_span(first: str, last: str) -> tuple[int, int]:
    begin, end = parse_time(first), parse_time(last)
    if begin is None or end is None or begin > end:
        raise Invalid(_("Enter a start and an end; the start must be before the end."))
    return begin, end
