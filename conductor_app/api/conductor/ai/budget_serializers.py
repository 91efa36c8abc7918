"""Budgets of models, as clients send and receive them."""

from typing import Any

from ....core.budget_periods import PERIODS, SCOPES
from ....core.document.checks.document_fields import FieldSpec, FieldTable
from ....core.document.checks.values import ChoiceOf, IntegerOf, read_text
from ....core.errors import Invalid
from ....engine.ai.budget_settings import BudgetLimits
from ....models import ModelBudget
from ..request_fields import read_request

BUDGET: FieldTable = (
    FieldSpec("scope", ChoiceOf(*SCOPES)),
    FieldSpec("name", read_text, ""),
    FieldSpec("period", ChoiceOf(*PERIODS)),
    FieldSpec("maxCost", IntegerOf(64)),
    FieldSpec("maxTokens", IntegerOf(64)),
    FieldSpec("reason", read_text, ""),
)


def parse_budget(document: dict[str, Any]) -> tuple[BudgetLimits, str]:
    """Return a budget and the reason of a request.

    Raises:
        ValidationFailed: when fields are invalid.
        Invalid: when the scope or the period is missing.
    """
    fields = read_request(document, BUDGET, "saveBudget.budget", lambda _fields, _position: None)
    for name in ("scope", "period"):
        if not fields.get(name):
            raise Invalid(f"The field '{name}' of a budget is missing.")
    limits = BudgetLimits(
        fields["scope"], fields["name"] or "", fields["period"], fields.get("maxCost"), fields.get("maxTokens")
    )
    return limits, (fields["reason"] or "")[:500]


def budget_document(budget: ModelBudget) -> dict[str, Any]:
    """Return a budget as clients see it."""
    limits = {"maxCost": budget.max_cost, "maxTokens": budget.max_tokens}
    return {
        "id": budget.pk,
        "scope": budget.scope,
        "name": budget.name,
        "period": budget.period,
        **{name: value for name, value in limits.items() if value is not None},
        "isOfIntegration": bool(budget.origin),
        "updatedAt": budget.updated_at,
        "updatedBy": budget.updated_by,
    }
