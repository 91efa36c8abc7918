"""Page of the budgets of calls of models: what is spent, and the form that changes them.

Alerts on budgets: the names of budgets in lists, and the form on the page of the budgets.
"""

from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...alerts.commands import save_alert, save_view
from ...alerts.models import Alert, AlertTarget
from ...alerts.queries import is_own_view, kind_label, own_views
from ...core.ai import ALL, PERIODS, RUN, SCOPES
from ...core.alerts import BUDGET, DAY_MINUTES, SPENT_PERCENT
from ...core.errors import Invalid, RequestRefused
from ...settings import conf
from ...utils import clock
from ...utils.formatting import format_count
from ...web.forms import parse_number
from ...web.pages import Page, require_permission, show_refusal
from ..commands import budgets
from ..commands.budgets import BudgetLimits, delete_budget, save_budget
from ..models import BudgetHold
from ..queries.budgets import (
    MILLION,
    PERIOD_LABELS,
    SCOPE_LABELS,
    WARNING_SHARE,
    BudgetState,
    budget_states,
    describe_budget,
    find_reference,
    format_cost,
    format_tokens,
    is_visible_budget,
    reference_of,
)
from ..store import OF_INTEGRATION

VIEW_NAME = "Budgets"
"""The name of the view to which alerts of the page of the budgets belong."""
HOUR_MINUTES = 60


def parse_budget_choice(text: str) -> dict[str, str] | None:
    """Return the budget of a form, None for all."""
    return find_reference(parse_number(text, _("budget"), digits=18)) if text else None


def add_budget_alert(form_data: QueryDict, by: str) -> Alert:
    """Add the alert of the form to the user's view of alerts on budgets, which is created if it is missing."""
    percent = parse_number(form_data.get("percent", ""), _("share"), digits=3)
    budget = parse_budget_choice(form_data.get("budget", ""))
    targets = [parse_number(text, _("target"), digits=18) for text in form_data.getlist("target")]
    view = own_views(by).filter(name=VIEW_NAME).first() or save_view(VIEW_NAME, {}, by)
    return save_alert(view, BUDGET, percent, HOUR_MINUTES, DAY_MINUTES, by, targets=targets, budget=budget)


def alert_context(by: str) -> dict[str, Any]:
    """Return the alerts on budgets that the user may see, and what the form offers."""
    rows = Alert.objects.filter(kind=BUDGET).select_related("view").order_by("pk")
    return {
        "alerts": [
            (alert, describe_budget(alert.budget))
            for alert in rows
            if alert.view is not None and (alert.view.is_shared or is_own_view(alert.view, by))
        ],
        "alert_targets": [(row, kind_label(row.kind)) for row in AlertTarget.objects.only("name", "kind")],
        "alert_percent": SPENT_PERCENT,
    }


BUDGET_PERMISSION = "conductor.change_modelbudget"
ALERT_PERMISSION = "conductor.change_run"


class BudgetsPage(Page):
    """Page of budgets."""

    name, title, template = "budgets", gettext_lazy("Budgets"), "ops/ai/budgets.html"
    permission = "conductor.view_modelbudget"
    shows_granted_rows = True

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        states = budget_states(clock.now())
        if not (sees_all := request.user.has_perm(self.permission)):
            states = [state for state in states if is_visible_budget(state.budget)]
        edited = next((each for each in states if str(each.budget.pk) == request.GET.get("edit")), None)
        return {
            "lines": [_line(state) for state in states],
            "edited": edited.budget if edited else None,
            "values": _form_values(edited),
            "scopes": SCOPE_LABELS.items(),
            "periods": [(period, label) for period, label in PERIOD_LABELS.items() if period != RUN],
            "currency": conf.ai_currency,
            "nearly_percent": int(WARNING_SHARE * 100),
            "may_act": request.user.has_perm(BUDGET_PERMISSION),
            "may_alert": request.user.has_perm(ALERT_PERMISSION),
            "alert_budgets": [(state.budget.pk, describe_budget(reference_of(state.budget))) for state in states],
            **(alert_context(request.user.get_username()) if sees_all else {}),
            "permission": BUDGET_PERMISSION,
        }

    def post(self, request: HttpRequest) -> HttpResponse:
        if request.POST.get("do") == "alert":
            return self._add_alert(request)
        require_permission(request, BUDGET_PERMISSION)
        form_data, by = request.POST, request.user.get_username()
        address = reverse("admin:budgets")
        try:
            if form_data.get("do") == "remove":
                delete_budget(parse_number(form_data.get("budget", ""), _("budget"), digits=18), by)
                messages.success(request, _("Budget deleted. The tasks that waited for it continue."))
            elif form_data.get("do") == "allow":
                attempt_id = form_data.get("attempt", "")
                hold = BudgetHold.objects.filter(pk=attempt_id[:64]).first()
                address = reverse("admin:conductor_run_change", args=[hold.run_id]) if hold else address
                budgets.allow_once(attempt_id, by, form_data.get("reason", "").strip())
                messages.success(request, _("The call is allowed. The task continues."))
            else:
                save_budget(_parse_limits(form_data), by)
                messages.success(request, _("Budget saved. The tasks that wait for it are checked again."))
        except RequestRefused as refused:
            show_refusal(request, refused)
        return HttpResponseRedirect(address)

    def _add_alert(self, request: HttpRequest) -> HttpResponse:
        require_permission(request, ALERT_PERMISSION)
        try:
            alert = add_budget_alert(request.POST, request.user.get_username())
        except RequestRefused as refused:
            show_refusal(request, refused)
            return HttpResponseRedirect(reverse("admin:budgets"))
        messages.success(request, _("Alert created. The back-test of the last seven days is below."))
        return HttpResponseRedirect(reverse("admin:alerts", query={"try": alert.pk}, fragment="tested"))


def _line(state: BudgetState) -> dict[str, Any]:
    budget, spent = state.budget, state.spent
    return {
        "budget": budget,
        "scope": SCOPE_LABELS[budget.scope],
        "name": budget.name,
        "period": PERIOD_LABELS[budget.period],
        "max_cost": "" if budget.max_cost is None else format_cost(budget.max_cost),
        "max_tokens": "" if budget.max_tokens is None else format_count(budget.max_tokens),
        "spent_cost": format_cost(spent.cost) if spent and budget.max_cost is not None else "",
        "spent_tokens": format_count(spent.tokens) if spent and budget.max_tokens is not None else "",
        "reserved": _describe_reserved(state),
        "percent": None if state.share is None else int(state.share * 100),
        "bar": min(int((state.share or 0) * 100), 100),
        "state": state,
        "is_of_integration": budget.origin == OF_INTEGRATION,
        "integration": budget.name.partition(":")[0],
    }


def _describe_reserved(state: BudgetState) -> str:
    """Return what open calls have reserved of the limits, or an empty text."""
    budget, reserved = state.budget, state.reserved
    amounts = [
        format_cost(reserved.cost) if budget.max_cost is not None and reserved.cost else "",
        format_tokens(reserved.tokens) if budget.max_tokens is not None and reserved.tokens else "",
    ]
    return ", ".join(filter(None, amounts))


def _form_values(edited: BudgetState | None) -> dict[str, str]:
    if edited is None:
        return {}
    budget = edited.budget
    return {
        "max_cost": "" if budget.max_cost is None else f"{Decimal(budget.max_cost) / MILLION:f}",
        "max_tokens": "" if budget.max_tokens is None else str(budget.max_tokens),
    }


def _parse_limits(form_data: Any) -> BudgetLimits:
    scope = form_data.get("scope", "")
    period = RUN if scope == RUN else form_data.get("period", "")
    if scope not in SCOPES or period not in PERIODS:
        raise Invalid(_("Select what the budget applies to, and its period."))
    name = "" if scope == ALL else form_data.get("name", "")
    tokens = form_data.get("max_tokens", "").strip()
    return BudgetLimits(
        scope,
        name,
        period,
        _parse_amount(form_data.get("max_cost", "")),
        parse_number(tokens, _("number of tokens"), digits=16) if tokens else None,
    )


def _parse_amount(text: str) -> int | None:
    """Return an amount of the currency in millionths, or None for an empty field."""
    text = text.strip().replace(",", ".")
    if not text:
        return None
    try:
        amount = Decimal(text[:40])
    except InvalidOperation:
        raise Invalid(_("Not a valid number: %(text)s.") % {"text": repr(text[:40])}) from None
    if not amount.is_finite() or not 0 <= amount <= 10**9:
        raise Invalid(_("The cost must be from 0 to %(most)s.") % {"most": format_count(10**9)})
    return int(amount * MILLION)
