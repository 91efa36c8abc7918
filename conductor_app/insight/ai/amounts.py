"""Texts of amounts, numbers of tokens, and budgets."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import conf
from ...core.budget_periods import ALL, CALLER, DAY, DEFINITION, INTEGRATION, MODEL, MONTH, RUN, WEEK
from ..numbers import format_count, format_decimal

MILLION = 1_000_000
SYMBOLS = {"USD": "$"}
SCOPE_LABELS = {
    ALL: gettext_lazy("All calls"),
    RUN: gettext_lazy("Each run"),
    DEFINITION: gettext_lazy("Workflow"),
    CALLER: gettext_lazy("Caller"),
    INTEGRATION: gettext_lazy("Integration"),
    MODEL: gettext_lazy("Model"),
}
PERIOD_LABELS = {
    RUN: gettext_lazy("Run"),
    DAY: gettext_lazy("Day"),
    WEEK: gettext_lazy("Week"),
    MONTH: gettext_lazy("Month"),
}
BUDGET_NAMES = {
    ALL: gettext_lazy("The budget of all calls"),
    DEFINITION: gettext_lazy("The budget of workflow `%(name)s`"),
    CALLER: gettext_lazy("The budget of caller `%(name)s`"),
    INTEGRATION: gettext_lazy("The budget of integration `%(name)s`"),
    MODEL: gettext_lazy("The budget of model `%(name)s`"),
    RUN: gettext_lazy("The budget of each run of `%(name)s`"),
}


def format_cost(cost: int) -> str:
    """Format an amount in millionths of the currency. Small amounts keep two significant digits."""
    decimals = 2
    while decimals < 6 and 0 < cost < 10 ** (7 - decimals):
        decimals += 1
    return format_amount(cost / MILLION, decimals)


def format_amount(amount: float, decimals: int) -> str:
    """Format an amount of the currency, such as a price, with its symbol or code."""
    number = format_decimal(amount, decimals)
    symbol = SYMBOLS.get(conf.ai_currency)
    return f"{symbol}{number}" if symbol else f"{number} {conf.ai_currency}"


def format_tokens(count: int) -> str:
    """Format a number of tokens with its unit."""
    return _("%(count)s tokens") % {"count": format_count(count)}


def name_budget(scope: str, name: str) -> str:
    """Return the beginning of a sentence about a budget."""
    if scope == RUN and not name:
        return _("The budget of each run")
    return str(BUDGET_NAMES[scope]) % {"name": name}
