"""Saved views: named selections of runs with several uses, and their alerts, tested on the last seven days."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import visible
from ...bulk import selections
from ...bulk.pages.operations import parse_selection
from ...core.alerts import ABSENCE, BUDGET, RULE_KINDS, SHARE, UNPOLLED_QUEUE
from ...core.errors import Invalid, NotFound, RequestRefused
from ...db import keyset_pages
from ...runs.pages.filters import list_parameters, selection_parameters, selection_query
from ...utils import clock
from ...utils.formatting import HOUR, TimeRange
from ...web.badges import exact_time, format_count
from ...web.charts import ChartSeries, ChartThreshold, TrendChart
from ...web.forms import parse_number
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from .. import commands
from ..models import Alert, AlertFiring, AlertTarget, SavedView
from ..queries import (
    VIEW_PERMISSION,
    BackTest,
    back_test,
    is_of_visible_workflow,
    is_own_view,
    kind_label,
    registered_subjects,
    rule_of,
    subject_of,
    visible_views,
)
from .targets import delivery_pill

PERMISSION = "conductor.change_run"
MAX_FIRINGS, MAX_TILES = 30, 8
ALERT_KIND_LABELS = {
    "count": gettext_lazy("at least (count)"),
    "share": gettext_lazy("at least (percent)"),
    "absence": gettext_lazy("fewer than"),
    "age": gettext_lazy("one open for at least (minutes)"),
}
STEP = 2 * HOUR
ALERT_SENTENCES = {
    "count": gettext_lazy("at least %(n)s in %(window)s min"),
    "share": gettext_lazy("at least %(n)s %% of runs in %(window)s min"),
    "absence": gettext_lazy("fewer than %(n)s in %(window)s min"),
    "age": gettext_lazy("one open for at least %(n)s min"),
    "budget": gettext_lazy("%(budget)s spent to at least %(n)s %%"),
}


class ViewsPage(Page):
    """List of the saved views."""

    name, title, template, permission = (
        "views",
        gettext_lazy("Saved views"),
        "ops/alerts/views.html",
        VIEW_PERMISSION,
    )
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        views = list(visible_views(request).prefetch_related("alerts"))
        titles = selections.failure_group_titles(view.selection for view in views)
        return {
            "views": [
                {
                    "view": view,
                    "is_own": is_own_view(view, request.user.get_username()),
                    "words": selection_text(view.selection, titles),
                    "list": list_address(view.selection),
                }
                for view in views
            ],
            **self._new_view_context(request),
        }

    def _new_view_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the selection that the form will save, from the filters of the list of runs."""
        if not request.GET:
            return {}
        try:
            fresh = (
                list_parameters(request.GET)
                if "from_list" in request.GET
                else selection_parameters(parse_selection(request.GET))
            )
            selections.selected_runs(_parse_parameters(fresh)).order_by()[:1].exists()
            return {"fresh": fresh, "description": selection_text(_parse_parameters(fresh))}
        except RequestRefused as refused:
            return {"refused": refused.message}

    def post(self, request: HttpRequest) -> HttpResponse:
        by = request.user.get_username()
        try:
            if request.POST.get("do") == "remove":
                commands.remove_view(_parse_number(request.POST.get("view", "")), by)
                messages.success(request, _("View deleted."))
            else:
                fresh = parse_selection(request.POST)
                shared = "is_shared" in request.POST
                tile = "is_tile" in request.POST
                view = commands.save_view(request.POST.get("title", ""), fresh, by, is_shared=shared, is_tile=tile)
                return HttpResponseRedirect(reverse("admin:view", args=[view.pk]))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:views"))


class ViewPage(ObjectPage):
    """Page of one view and its alerts."""

    name, template, permission = "view", "ops/alerts/view.html", VIEW_PERMISSION
    route = "views/<int:view_id>/"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest, view_id: int) -> dict[str, Any]:
        view, now = _find_view(request, view_id), clock.now()
        rows = view.alerts.prefetch_related("targets").order_by("pk")[:10]
        alerts = [alert for alert in rows if _is_visible(request, alert)]
        firings = AlertFiring.objects.filter(alert__in=alerts).order_by("-at", "-pk")[:MAX_FIRINGS]
        may_act = request.user.has_perm(PERMISSION)
        targets = AlertTarget.objects.only("name", "kind") if may_act else ()
        tried = next((alert for alert in alerts if str(alert.pk) == request.GET.get("try")), None)
        return {
            "title": view.name,
            "view": view,
            "words": selection_text(view.selection),
            "list": list_address(view.selection),
            **_choices_of_kinds(request),
            "alerts": [(alert, alert_sentence(alert)) for alert in alerts],
            "firings": [(firing, kind_label(firing.channel), delivery_pill(firing)) for firing in firings],
            "targets": [(row, kind_label(row.kind)) for row in targets],
            "tested_alert": tried,
            **(_back_test_context(tried, now) if tried else {}),
            "may_act": may_act,
            "permission": PERMISSION,
        }

    def handle_post(self, request: HttpRequest, view_id: int) -> HttpResponse:
        require_permission(request, PERMISSION)
        view, form_data, by = _find_view(request, view_id), request.POST, request.user.get_username()
        address = reverse("admin:view", args=[view.pk])
        try:
            if form_data.get("do") == "remove":
                found = view.alerts.filter(pk=_parse_number(form_data.get("alert", ""))).first()
                commands.remove_alert(found.pk if found else -1, by)
                messages.success(request, _("Alert deleted."))
            else:
                threshold, window, repeat = (
                    _parse_number(form_data.get(name, "")) for name in ("threshold", "window", "repeat")
                )
                targets = [_parse_number(text) for text in form_data.getlist("target")]
                kind, budget = form_data.get("kind", ""), None
                if kind == BUDGET:
                    subject = subject_of(kind)
                    require_permission(request, subject.permission)
                    text = form_data.get("budget", "")
                    budget = subject.find(parse_number(text, subject.noun, digits=18)) if text else None
                alert = commands.save_alert(view, kind, threshold, window, repeat, by, targets=targets, budget=budget)
                messages.success(request, _("Alert created. The back-test of the last seven days is below."))
                return HttpResponseRedirect(f"{address}?try={alert.pk}")
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(address)


class AlertPage(ObjectPage):
    """Target of the link in an alert's mail: the runs of the alert that the user may see, or the causes or queues."""

    name, permission, route = "alert", VIEW_PERMISSION, "alerts/<int:alert_id>/"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest, alert_id: int) -> Any:
        """Redirect to the list of the alert's runs, to the budgets, the failures or the queues.

        Raises:
            NotFound: when the alert no longer exists.
        """
        alert = Alert.objects.select_related("view").filter(pk=min(alert_id, 2**62)).first()
        if alert is None or not _is_visible(request, alert):
            raise NotFound(_("This alert no longer exists."))
        if alert.kind in RULE_KINDS:
            return HttpResponseRedirect(rule_address(alert))
        if alert.kind == BUDGET:
            return HttpResponseRedirect(reverse(f"admin:{subject_of(alert.kind).page}"))
        return HttpResponseRedirect(list_address(alert.selection))


class TilesPage(Page):
    """Fragment of the overview with the views that are tiles, each with its count."""

    name, permission, title = "view_tiles", VIEW_PERMISSION, gettext_lazy("Saved views")
    shows_granted_rows = True
    template, live_template = "ops/monitoring/tiles_page.html", "ops/monitoring/tiles.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        return {"tiles": [_tile_context(view) for view in visible_views(request).filter(is_tile=True)[:MAX_TILES]]}


def selection_text(selection: Mapping[str, Any], group_titles: Mapping[int, str] | None = None) -> str:
    """Return a selection as text. `group_titles`: those of its failure groups, if they are known."""
    try:
        return selections.describe_selection(selection, group_titles)
    except Invalid:
        return _("a selection that is no longer valid")


def list_address(selection: Mapping[str, Any]) -> str:
    """Return the address of the list of runs with a selection."""
    return reverse("admin:conductor_run_changelist", query=selection_query(selection) or None)


def rule_address(alert: Alert) -> str:
    """Return the address of what a rule watches."""
    if alert.kind == UNPOLLED_QUEUE:
        return reverse("admin:queues")
    return reverse("admin:failures", query={"definition": alert.workflow} if alert.workflow else None)


def _tile_context(view: SavedView) -> dict[str, Any]:
    """Return the count of a view. A view with an invalid selection has no count and does not affect the others."""
    try:
        count, is_capped = keyset_pages.count_rows(visible(selections.selected_runs(view.selection)))
    except Invalid:
        count, is_capped = None, False
    return {"view": view, "count": count, "is_capped": is_capped, "address": list_address(view.selection)}


def _back_test_context(alert: Alert, now: int) -> dict[str, Any]:
    tested = back_test(alert, now)
    words = _("%(n)s %% spent") if alert.kind == BUDGET else _("%(n)s in its window")
    return {
        "past_matches": [(exact_time(at), words % {"n": format_count(hits)}) for at, hits in tested.firings],
        "chart": _back_test_chart(tested, alert.kind),
    }


def _back_test_chart(tested: BackTest, kind: str) -> TrendChart:
    """Return the chart of a back-test. A bar has the value of its time that is the closest to firing."""
    time_range = TimeRange("", tested.begin, STEP, -(-(tested.end - tested.begin) // STEP))
    unit = " %" if kind in (SHARE, BUDGET) else ""
    values: dict[int, list[float]] = {}
    for at, value in tested.points:
        values.setdefault(_place(at, time_range), []).append(value)
    extreme = min if kind == ABSENCE else max
    measured = [round(extreme(values.get(place, [0]))) for place in range(time_range.count)]
    fired = {_place(at, time_range) for at, _hits in tested.firings}
    sentence = ngettext(
        "In the last seven days it would have fired %(n)s time",
        "In the last seven days it would have fired %(n)s times",
        len(tested.firings),
    )
    return TrendChart(
        label=sentence % {"n": len(tested.firings)},
        time_range=time_range,
        series=(
            ChartSeries(
                _("Measured value") + unit, "started", [0 if n in fired else v for n, v in enumerate(measured)]
            ),
            ChartSeries(
                _("Would have fired") + unit, "failed", [v if n in fired else 0 for n, v in enumerate(measured)]
            ),
        ),
        threshold=ChartThreshold(tested.limit, _("Threshold %(limit)s") % {"limit": f"{tested.limit}{unit}"}),
        has_totals=False,
    )


def _place(moment: int, time_range: TimeRange) -> int:
    """Return the bar of a time. The end of the range belongs to the last bar."""
    return min((moment - time_range.since) // time_range.step, time_range.count - 1)


def alert_sentence(alert: Alert) -> str:
    """Return the condition of an alert as text."""
    rule = rule_of(alert)
    facts: dict[str, Any] = {"n": rule.threshold, "window": alert.window_minutes, "repeat": alert.repeat_minutes}
    if alert.kind == BUDGET:
        facts["budget"] = subject_of(alert.kind).describe(alert.budget)
    condition = ALERT_SENTENCES[alert.kind] % facts
    repeat = _("repeat after %(repeat)s min") % facts
    return f"{condition}; {repeat}"


def _choices_of_kinds(request: HttpRequest) -> dict[str, Any]:
    """Return the kinds of alerts that the user may add, and the budgets to choose from."""
    subjects = {
        kind: subject for kind, subject in registered_subjects().items() if request.user.has_perm(subject.permission)
    }
    return {
        "kinds": [*ALERT_KIND_LABELS.items(), *((kind, subject.label) for kind, subject in subjects.items())],
        "budgets": subjects[BUDGET].choices() if BUDGET in subjects else [],
    }


def _parse_parameters(parameters: dict[str, str]) -> dict[str, Any]:
    return parse_selection(QueryDict(urlencode(parameters)))


def _find_view(request: HttpRequest, view_id: int) -> SavedView:
    view = visible_views(request).filter(pk=min(view_id, 2**62)).first()
    if view is None:
        raise NotFound(_("No such view, or it is not shared."))
    return view


def _is_visible(request: HttpRequest, alert: Alert) -> bool:
    """Return True if the user may see an alert. It counts all runs of its view: the user must see these."""
    if request.user.has_perm(VIEW_PERMISSION):
        return True
    return alert.kind != BUDGET and alert.view is not None and is_of_visible_workflow(alert.view)


def _parse_number(text: str) -> int:
    text = text.strip()
    if not text.isdecimal() or len(text) > 9:
        raise Invalid(_("Not a valid integer: %(text)s.") % {"text": repr(text[:40])})
    return int(text)
