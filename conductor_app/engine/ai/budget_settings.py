"""Commands on budgets. Each change is audited, and releases the tasks that wait for the budget."""

from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.db.models.signals import post_delete, post_save

from ... import clock
from ...core.budget_periods import ALL, DAY, MODEL, MONTH, PERIODS, RUN, SCOPES, WEEK, period_bounds
from ...core.errors import Invalid, NotFound
from ...models import BudgetHold, IntegrationModel, ModelBudget
from ...models.budgets import OF_INTEGRATION, is_counted, spent_before
from ...store.rows import strip_nul
from .. import audit

MAX_NAME_LENGTH = 320
MAX_LIMIT = 10**15
PERIOD_OF_FREQUENCY = {"daily": DAY, "weekly": WEEK, "monthly": MONTH}
"""Periods by Conductor's names (`frequency` of a model of an integration)."""


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """What an operator sets of a budget. `max_cost`: in millionths of the currency. None: no limit."""

    scope: str
    name: str
    period: str
    max_cost: int | None = None
    max_tokens: int | None = None


def save_budget(limits: BudgetLimits, by: str, reason: str = "") -> ModelBudget:
    """Create or replace the budget of this scope, name and period. Tasks that wait for it are checked again.

    Raises:
        Invalid: when the scope, the name, the period or a limit is invalid.
    """
    limits = _normalize(limits)
    with transaction.atomic():
        budget = _save(limits, by)
        audit.record("budget", budget.pk, "save", by, reason=reason, facts=asdict(limits))
    return budget


def delete_budget(budget_id: int, by: str, reason: str = "") -> None:
    """Delete a budget and release the tasks that wait for it.

    Raises:
        NotFound: when there is no such budget.
        Invalid: when the integration of the model sets it.
    """
    with transaction.atomic():
        budget = ModelBudget.objects.select_for_update().filter(pk=budget_id).first()
        if budget is None:
            raise NotFound(f"There is no budget {budget_id}.")
        if budget.origin == OF_INTEGRATION:
            raise Invalid("The integration sets this budget. Remove the token limit of the model there.")
        facts = {field: getattr(budget, field) for field in BudgetLimits.__dataclass_fields__}
        audit.record("budget", budget.pk, "delete", by, reason=reason, facts=facts)
        _release_waiting(budget)
        budget.delete()


def connect_model_limits() -> None:
    """Keep the budgets that integrations set in step with the token limits of their models."""
    post_save.connect(_on_model_saved, sender=IntegrationModel, dispatch_uid="budget of a model")
    post_delete.connect(_on_model_deleted, sender=IntegrationModel, dispatch_uid="budget of a deleted model")


def _on_model_saved(sender: type, instance: IntegrationModel, **_: Any) -> None:
    period = PERIOD_OF_FREQUENCY.get(instance.frequency.lower(), DAY)
    limit = instance.max_tokens
    others = _budgets_of_model(instance)
    if limit is not None and limit >= 0:
        _save(BudgetLimits(MODEL, str(instance), period, max_tokens=limit), instance.updated_by, OF_INTEGRATION)
        others = others.exclude(period=period)
    for budget in others:
        _release_waiting(budget)
        budget.delete()


def _on_model_deleted(sender: type, instance: IntegrationModel, **_: Any) -> None:
    for budget in _budgets_of_model(instance):
        _release_waiting(budget)
        budget.delete()


def _budgets_of_model(model: IntegrationModel) -> Any:
    return ModelBudget.objects.filter(scope=MODEL, name=str(model), origin=OF_INTEGRATION)


def _save(limits: BudgetLimits, by: str, origin: str = "") -> ModelBudget:
    now = clock.now()
    facts = {"max_cost": limits.max_cost, "max_tokens": limits.max_tokens, "updated_at": now, "updated_by": by[:255]}
    budget, is_new = ModelBudget.objects.update_or_create(
        scope=limits.scope, name=limits.name, period=limits.period, origin=origin, defaults=facts
    )
    if is_new and is_counted(budget):
        spent = spent_before(budget, now)
        budget.period_start, _end = period_bounds(budget.period, now)
        budget.spent_cost, budget.spent_tokens = spent.cost, spent.tokens
        budget.save(update_fields=["period_start", "spent_cost", "spent_tokens"])
    _release_waiting(budget)
    return budget


def _release_waiting(budget: ModelBudget) -> None:
    """Let the sweep release the attempts that wait for a budget."""
    BudgetHold.objects.filter(budget=budget, allowed_by="").update(until=clock.now())


def _normalize(limits: BudgetLimits) -> BudgetLimits:
    name = strip_nul(limits.name).strip()
    if limits.scope not in SCOPES:
        raise Invalid(f"The scope of a budget must be one of: {', '.join(SCOPES)}.")
    if limits.period not in PERIODS:
        raise Invalid(f"The period of a budget must be one of: {', '.join(PERIODS)}.")
    if (limits.scope == RUN) != (limits.period == RUN):
        raise Invalid("A budget of runs has the period RUN, and only such a budget.")
    if limits.scope == ALL and name:
        raise Invalid("A budget of all calls has no name.")
    if limits.scope not in (ALL, RUN) and not name:
        raise Invalid(f"A budget of the scope {limits.scope} needs a name.")
    if limits.scope == MODEL and not all(name.partition(":")):
        raise Invalid("The name of a model in a budget is `integration:model`, such as `openai:gpt-5-mini`.")
    if len(name) > MAX_NAME_LENGTH:
        raise Invalid(f"The name of a budget must have at most {MAX_NAME_LENGTH} characters.")
    if limits.max_cost is None and limits.max_tokens is None:
        raise Invalid("A budget needs a limit of cost or of tokens.")
    for field, value in (("maxCost", limits.max_cost), ("maxTokens", limits.max_tokens)):
        if value is not None and not 0 <= value <= MAX_LIMIT:
            raise Invalid(f"`{field}` must be from 0 to {MAX_LIMIT}.")
    return BudgetLimits(limits.scope, name, limits.period, limits.max_cost, limits.max_tokens)
