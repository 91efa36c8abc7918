"""The page Alerts: rules that one click turns on, alerts on the runs of views, targets, and what was sent.

An alert on runs is tested on the last seven days.
"""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...access.visibility import controllable, may, visible
from ...core.alerts import ABSENCE, ALERT_TARGET_KINDS, BUDGET, RULE_KINDS, SHARE, UNPOLLED_QUEUE
from ...core.errors import Invalid, NotFound, RequestRefused
from ...definitions.models import WorkflowDefinition
from ...failures.models import FailureGroup
from ...failures.queries import has_failed_run
from ...utils import clock
from ...utils.formatting import HOUR, TimeRange
from ...web.badges import exact_time, format_count
from ...web.charts import ChartSeries, ChartThreshold, TrendChart
from ...web.forms import parse_number
from ...web.pages import ObjectPage, Page, require_permission, show_refusal
from .. import commands
from ..models import Alert, AlertFiring, AlertTarget, SavedView
from ..queries import (
    BACK_MS,
    CHANGE_PERMISSION,
    KIND_LABELS,
    MAX_NAMED,
    VIEW_PERMISSION,
    BackTest,
    back_test,
    check_rule,
    kind_label,
    may_change_rules,
    registered_subjects,
    rule_of,
    subject_of,
    visible_alerts,
    visible_views,
)
from .saved_views import list_address
from .targets import KIND_TEXTS, delivery_pill, settings_text

MAX_ALERTS, MAX_FIRINGS, MAX_CHOICES = 200, 30, 500
RULES = {
    "new_cause": (
        gettext_lazy("New cause"),
        gettext_lazy("A run failed for a new cause. Errors that a retry repaired do not count."),
    ),
    "returned_cause": (gettext_lazy("Cause came back"), gettext_lazy("A run failed for a cause that was resolved.")),
    "unpolled_queue": (
        gettext_lazy("Queue without workers"),
        gettext_lazy("A task has waited for 5 minutes in a queue that no worker polls."),
    ),
}
"""The label of each rule, and what makes it fire."""
ALERT_KIND_LABELS = {
    "count": gettext_lazy("at least (count)"),
    "share": gettext_lazy("at least (percent)"),
    "absence": gettext_lazy("fewer than"),
    "age": gettext_lazy("one open for at least (minutes)"),
}
ALERT_SENTENCES = {
    "count": gettext_lazy("at least %(n)s in %(window)s min"),
    "share": gettext_lazy("at least %(n)s %% of runs in %(window)s min"),
    "absence": gettext_lazy("fewer than %(n)s in %(window)s min"),
    "age": gettext_lazy("one open for at least %(n)s min"),
    "budget": gettext_lazy("%(budget)s spent to at least %(n)s %%"),
}
STEP = 2 * HOUR
NUMBERS = {
    "threshold": gettext_lazy("Number"),
    "window": gettext_lazy("Within minutes"),
    "repeat": gettext_lazy("Repeat after minutes"),
}
"""The numbers of the form of an alert, with their labels."""


class AlertsPage(Page):
    """Rules and alerts on the runs of views, those that fire first; then targets and history.

    Who sees some workflows only sees their alerts, turns on the rules of those that they operate, and names a target.
    """

    name, title, permission = "alerts", gettext_lazy("Alerts"), VIEW_PERMISSION
    template = "ops/alerts/alerts.html"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        rows = visible_alerts(request).select_related("view").prefetch_related("targets")
        rows = rows.order_by("workflow", "view", "pk")
        alerts = sorted(rows[:MAX_ALERTS], key=lambda alert: alert.incident_at is None)
        on_everywhere = {alert.kind for alert in alerts if alert.view is None and not alert.workflow}
        targets = AlertTarget.objects.annotate(alert_count=Count("alerts")).defer("sealed")
        tried = next((each for each in alerts if each.view_id and str(each.pk) == request.GET.get("try")), None)
        sees_all, may_change_all = (request.user.has_perm(each) for each in (VIEW_PERMISSION, CHANGE_PERMISSION))
        choices = _choices(request) if may(request.user, CHANGE_PERMISSION) else {}
        may_remove = {name: may_change_rules(request.user, name) for name in {alert.workflow for alert in alerts}}
        since = clock.now() - BACK_MS
        new_causes = visible(FailureGroup.objects.not_merged()).filter(
            has_failed_run(since), last_at__gte=since, first_at__gte=since
        )
        return {
            "alerts": [_alert_row(alert, may_remove[alert.workflow]) for alert in alerts],
            "tested_alert": tried,
            **(_back_test_context(tried) if tried else {}),
            **choices,
            "rules": [
                {"kind": kind, "label": RULES[kind][0], "text": RULES[kind][1], "is_on": kind in on_everywhere}
                for kind in RULE_KINDS
            ],
            "new_causes": new_causes.order_by()[:1_000].count(),
            "targets": [(row, kind_label(row.kind), settings_text(row)) for row in targets] if sees_all else [],
            "choices": [(row, kind_label(row.kind)) for row in targets] if may_change_all else [],
            "target_kinds": [(kind, KIND_LABELS[kind], KIND_TEXTS[kind]) for kind in ALERT_TARGET_KINDS],
            "firings": [
                (firing, kind_label(firing.channel), delivery_pill(firing)) for firing in _firings(request, sees_all)
            ],
            "sees_all": sees_all,
            "may_act": may_change_all or bool(choices.get("workflows")),
            "may_change_all": may_change_all,
            "required": CHANGE_PERMISSION,
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        form_data, by = request.POST, request.user.get_username()
        act, address = form_data.get("do", ""), reverse("admin:alerts")
        try:
            if act == "remove":
                pk = parse_number(form_data.get("alert", ""), _("Alert"), digits=18)
                alert = visible_alerts(request).filter(pk=pk).first()
                _require_rules_of(request, alert.workflow if alert else "")
                commands.remove_alert(pk, by)
                messages.success(request, _("Alert deleted."))
            elif act == "save":
                require_permission(request, CHANGE_PERMISSION)
                address = reverse("admin:alerts", query={"try": _save_alert(request).pk}, fragment="tested")
                messages.success(request, _("Alert created. The back-test of the last seven days is below."))
            else:
                _require_rules_of(request, form_data.get("workflow", ""))
                rule = commands.turn_on_rule(act, form_data.get("workflow", ""), _chosen_targets(request), by)
                messages.success(request, _rule_message(rule))
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
            return HttpResponseRedirect(_rule_address(alert))
        if alert.kind == BUDGET:
            return HttpResponseRedirect(reverse(f"admin:{subject_of(alert.kind).page}"))
        return HttpResponseRedirect(list_address(alert.selection))


def _require_rules_of(request: HttpRequest, workflow: str) -> None:
    if not may_change_rules(request.user, workflow):
        raise PermissionDenied(CHANGE_PERMISSION)


def _firings(request: HttpRequest, sees_all: bool) -> list[AlertFiring]:
    """Return the newest notifications. Answers and errors, which may have addresses, are for those who see targets."""
    rows = AlertFiring.objects.order_by("-pk")
    if sees_all:
        return list(rows[:MAX_FIRINGS])
    found = list(rows.filter(alert__in=visible_alerts(request).values("pk"))[:MAX_FIRINGS])
    for firing in found:
        firing.answer = firing.error = ""
    return found


def _choices(request: HttpRequest) -> dict[str, Any]:
    """Return what the forms offer: workflows, views, kinds of alerts, and budgets."""
    names = (
        controllable(visible(WorkflowDefinition.objects.all()))
        .order_by("name")
        .values_list("name", flat=True)
        .distinct()
    )
    subjects = {
        kind: subject for kind, subject in registered_subjects().items() if request.user.has_perm(subject.permission)
    }
    return {
        "workflows": list(names[:MAX_CHOICES]),
        "views": [(str(pk), name) for pk, name in visible_views(request).values_list("pk", "name")[:MAX_CHOICES]],
        "chosen_view": request.GET.get("view", ""),
        "kinds": [*ALERT_KIND_LABELS.items(), *((kind, subject.label) for kind, subject in subjects.items())],
        "budgets": subjects[BUDGET].choices() if BUDGET in subjects else [],
    }


def _save_alert(request: HttpRequest) -> Alert:
    """Save an alert on the runs of a view, or on a budget."""
    form_data = request.POST
    view_id = parse_number(form_data.get("view", ""), _("Saved view"), digits=18)
    view: SavedView | None = visible_views(request).filter(pk=view_id).first()
    if view is None:
        raise NotFound(_("No such view, or it is not shared."))
    threshold, window, repeat = (parse_number(form_data.get(name, ""), label) for name, label in NUMBERS.items())
    kind, budget = form_data.get("kind", ""), None
    if kind == BUDGET:
        subject = subject_of(kind)
        require_permission(request, subject.permission)
        text = form_data.get("budget", "")
        budget = subject.find(parse_number(text, subject.noun, digits=18)) if text else None
    by, targets = request.user.get_username(), _chosen_targets(request)
    return commands.save_alert(view, kind, threshold, window, repeat, by, targets=targets, budget=budget)


def _rule_message(rule: Alert) -> str:
    """Return the message about a rule that has been turned on. It names the queues that it fires for at once."""
    names = list(check_rule(rule, clock.now()).new) if rule.kind == UNPOLLED_QUEUE else []
    if not names:
        return _("The rule is on. It fires for what begins from now on.")
    shown = ", ".join(names[:MAX_NAMED]) + (" …" if len(names) > MAX_NAMED else "")
    return _("The rule is on. Within a minute it fires for the queues without workers: %(names)s.") % {"names": shown}


def _chosen_targets(request: HttpRequest) -> list[int]:
    """Return the ids of the targets: those chosen in the list, or for those who do not see it, the one that is named.

    Raises:
        Invalid: when no target has the name.
    """
    if not request.user.has_perm(CHANGE_PERMISSION):
        found = AlertTarget.objects.filter(name=request.POST.get("target_name", "").strip()).values_list(
            "pk", flat=True
        )
        if not found:
            raise Invalid(_("No alert target has this name. Ask an administrator for the name of a target."))
        return list(found)
    return [parse_number(text, _("Target"), digits=18) for text in request.POST.getlist("target")]


def _alert_row(alert: Alert, may_remove: bool) -> dict[str, Any]:
    """Return the condition of an alert, what it is about with its address, and whether the user may turn it off."""
    row = {"alert": alert, "may_remove": may_remove}
    if alert.view is not None:
        return row | {"sentence": _alert_sentence(alert), "address": list_address(alert.view.selection)}
    return row | {"sentence": RULES[alert.kind][0], "address": _rule_address(alert)}


def _alert_sentence(alert: Alert) -> str:
    """Return the condition of an alert as text."""
    rule = rule_of(alert)
    facts: dict[str, Any] = {"n": rule.threshold, "window": alert.window_minutes, "repeat": alert.repeat_minutes}
    if alert.kind == BUDGET:
        facts["budget"] = subject_of(alert.kind).describe(alert.budget)
    condition = ALERT_SENTENCES[alert.kind] % facts
    repeat = _("repeat after %(repeat)s min") % facts
    return f"{condition}; {repeat}"


def _rule_address(alert: Alert) -> str:
    """Return the address of what a rule watches."""
    if alert.kind == UNPOLLED_QUEUE:
        return reverse("admin:queues")
    return reverse("admin:failures", query={"definition": alert.workflow} if alert.workflow else None)


def _is_visible(request: HttpRequest, alert: Alert) -> bool:
    """Return True if the user may see an alert. It counts all runs of its view: the user must see these."""
    return visible_alerts(request).filter(pk=alert.pk).exists()


def _back_test_context(alert: Alert) -> dict[str, Any]:
    tested = back_test(alert, clock.now())
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
