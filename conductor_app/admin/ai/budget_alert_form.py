"""Alerts on budgets: the names of budgets in lists, and the form on the page of the budgets."""

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from ...core.alerts import BUDGET, DAY_MINUTES, SPENT_PERCENT
from ...core.errors import Invalid
from ...engine.failures.alerts import save_alert, save_view
from ...insight.ai.amounts import PERIOD_LABELS, name_budget
from ...models import Alert, AlertTarget, ModelBudget, SavedView
from ..form_parsing import parse_number
from ..monitoring.alert_target_form import kind_label

VIEW_NAME = "Budgets"
"""The name of the view to which alerts of the page of the budgets belong."""
HOUR_MINUTES = 60


def reference_of(budget: ModelBudget) -> dict[str, str]:
    """Return what identifies a budget in an alert."""
    return {"scope": budget.scope, "name": budget.name, "period": budget.period}


def describe_budget(reference: Mapping[str, str] | None) -> str:
    """Return the name of a budget with its period, or that of all budgets."""
    if not reference:
        return _("any budget")
    budget = name_budget(reference["scope"], reference["name"]).replace("`", "")
    return f"{budget} ({PERIOD_LABELS[reference['period']]})"


def parse_budget_choice(text: str) -> dict[str, str] | None:
    """Return the budget of a form, None for all.

    Raises:
        Invalid: when there is no such budget.
    """
    if not text:
        return None
    budget = ModelBudget.objects.filter(pk=parse_number(text, _("budget"), digits=18)).first()
    if budget is None:
        raise Invalid(_("There is no such budget."))
    return reference_of(budget)


def add_budget_alert(form_data: QueryDict, by: str) -> Alert:
    """Add the alert of the form to the user's view of alerts on budgets, which is created if it is missing.

    Raises:
        Invalid: when a field is invalid.
    """
    percent = parse_number(form_data.get("percent", ""), _("share"), digits=3)
    budget = parse_budget_choice(form_data.get("budget", ""))
    targets = [parse_number(text, _("target"), digits=18) for text in form_data.getlist("target")]
    view = SavedView.objects.filter(name=VIEW_NAME, owner=by).first() or save_view(VIEW_NAME, {}, by)
    return save_alert(view, BUDGET, percent, HOUR_MINUTES, DAY_MINUTES, by, targets=targets, budget=budget)


def alert_context(by: str) -> dict[str, Any]:
    """Return the alerts on budgets that the user may see, and what the form offers."""
    rows = Alert.objects.filter(kind=BUDGET).select_related("view").order_by("pk")
    return {
        "alerts": [
            (alert, describe_budget(alert.budget)) for alert in rows if alert.view.is_shared or alert.view.owner == by
        ],
        "alert_targets": [(row, kind_label(row.kind)) for row in AlertTarget.objects.only("name", "kind")],
        "alert_percent": SPENT_PERCENT,
    }
