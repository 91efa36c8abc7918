"""The page Alerts: rules that one click turns on, alerts of saved views, targets, and what was sent."""

from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...access.visibility import visible
from ...core.alerts import ALERT_TARGET_KINDS, RULE_KINDS
from ...core.errors import RequestRefused
from ...definitions.models import WorkflowDefinition
from ...web.forms import parse_number
from ...web.pages import Page, require_permission, show_refusal
from .. import commands
from ..models import Alert, AlertFiring, AlertTarget
from ..queries import KIND_LABELS, kind_label
from .saved_views import alert_sentence, rule_address
from .targets import CHANGE_PERMISSION, KIND_TEXTS, VIEW_PERMISSION, delivery_pill, settings_text

MAX_ALERTS, MAX_FIRINGS, MAX_WORKFLOWS = 200, 30, 500
RULES = {
    "new_cause": (gettext_lazy("New cause"), gettext_lazy("A run failed for a cause that was not there before.")),
    "returned_cause": (gettext_lazy("Cause came back"), gettext_lazy("A failure has a cause that was resolved.")),
    "unpolled_queue": (
        gettext_lazy("Queue without workers"),
        gettext_lazy("A task has waited for 5 minutes in a queue that no worker polls."),
    ),
}
"""The label of each rule, and what makes it fire."""


class AlertsPage(Page):
    """Rules, targets and history of alerts."""

    name, title, permission = "alerts", gettext_lazy("Alerts"), VIEW_PERMISSION
    template = "ops/alerts/alerts.html"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        alerts = Alert.objects.select_related("view").prefetch_related("targets").order_by("workflow", "view", "pk")
        targets = AlertTarget.objects.annotate(alert_count=Count("alerts")).defer("sealed")
        may_act = request.user.has_perm(CHANGE_PERMISSION)
        names = visible(WorkflowDefinition.objects.all()).order_by("name").values_list("name", flat=True).distinct()
        return {
            "alerts": [_alert_row(alert) for alert in alerts[:MAX_ALERTS]],
            "rules": [(kind, *RULES[kind]) for kind in RULE_KINDS],
            "workflows": list(names[:MAX_WORKFLOWS]) if may_act else (),
            "targets": [(row, kind_label(row.kind), settings_text(row)) for row in targets],
            "choices": [(row, kind_label(row.kind)) for row in targets],
            "kinds": [(kind, KIND_LABELS[kind], KIND_TEXTS[kind]) for kind in ALERT_TARGET_KINDS],
            "firings": [
                (firing, kind_label(firing.channel), delivery_pill(firing))
                for firing in AlertFiring.objects.order_by("-pk")[:MAX_FIRINGS]
            ],
            "may_act": may_act,
            "required": CHANGE_PERMISSION,
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        require_permission(request, CHANGE_PERMISSION)
        form_data, by = request.POST, request.user.get_username()
        try:
            if form_data.get("do") == "remove":
                commands.remove_alert(parse_number(form_data.get("alert", ""), _("Alert"), digits=18), by)
                messages.success(request, _("Alert deleted."))
            else:
                targets = [parse_number(text, _("Target"), digits=18) for text in form_data.getlist("target")]
                commands.turn_on_rule(form_data.get("do", ""), form_data.get("workflow", ""), targets, by)
                messages.success(request, _("The rule is on. It fires for what begins from now on."))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(reverse("admin:alerts"))


def _alert_row(alert: Alert) -> dict[str, Any]:
    """Return the condition of an alert, what it is about with its address, and its targets."""
    if alert.view is not None:
        return {
            "alert": alert,
            "sentence": alert_sentence(alert),
            "address": reverse("admin:view", args=[alert.view.pk]),
        }
    return {"alert": alert, "sentence": RULES[alert.kind][0], "address": rule_address(alert)}
