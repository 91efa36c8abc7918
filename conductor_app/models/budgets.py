"""Which budgets apply to a call of a model, and what is spent of them."""

from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import Q, QuerySet, Subquery, Sum

from ..core.budget_periods import ALL, CALLER, DEFINITION, INTEGRATION, MODEL, RUN, period_bounds
from .model_calls import ModelBudget, ModelCall, ModelUsage
from .runs import Run

OF_INTEGRATION = "integration"
"""The origin of a budget that the limit of a model sets."""


class BudgetedCall(Protocol):
    """What budgets know of a call."""

    @property
    def run_id(self) -> Any: ...

    @property
    def definition(self) -> Any: ...

    @property
    def integration(self) -> Any: ...

    @property
    def model(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that has not begun."""

    run_id: str
    definition: str
    integration: str
    model: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What is spent of a budget in its current period. `cost`: in millionths of the currency."""

    cost: int = 0
    tokens: int = 0

    def exhausts(self, budget: ModelBudget) -> bool:
        """Return True if a limit of the budget is reached."""
        return _reaches(self.cost, budget.max_cost) or _reaches(self.tokens, budget.max_tokens)

    def share_of(self, budget: ModelBudget) -> float:
        """Return the spent share of the limit that is reached first: 1 if the budget is spent."""
        limits = ((self.cost, budget.max_cost), (self.tokens, budget.max_tokens))
        return max((1.0 if not limit else used / limit for used, limit in limits if limit is not None), default=0.0)


def _reaches(used: int, limit: int | None) -> bool:
    return limit is not None and used >= limit


def budgets_for(call: BudgetedCall) -> QuerySet[ModelBudget]:
    """Return the budgets that apply to a call. The caller is the one that started its run."""
    caller = Subquery(Run.objects.filter(pk=call.run_id).values("started_by")[:1])
    return ModelBudget.objects.filter(
        Q(scope=ALL)
        | Q(scope=RUN, name__in=("", call.definition))
        | Q(scope=DEFINITION, name=call.definition)
        | Q(scope=INTEGRATION, name=call.integration)
        | Q(scope=MODEL, name=f"{call.integration}:{call.model}")
        | Q(scope=CALLER, name=caller)
    )


def limits_of(budget: ModelBudget) -> tuple[int | None, int | None]:
    """Return the limits of a budget: cost and tokens."""
    return budget.max_cost, budget.max_tokens


def is_counted(budget: ModelBudget) -> bool:
    """Return True if the row of the budget has what is spent. The use of a run is the sum of its calls."""
    return budget.scope != RUN


def spent_of(budget: ModelBudget, now: int) -> Spent:
    """Return what the row of a budget has of the period that contains `now`."""
    begin, _end = period_bounds(budget.period, now)
    return Spent(budget.spent_cost, budget.spent_tokens) if budget.period_start == begin else Spent()


def spent_by_run(run_id: str) -> Spent:
    """Return what the calls of a run have spent."""
    sums = ModelCall.objects.filter(run_id=run_id).aggregate(
        cost=Sum("cost"), prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens")
    )
    return Spent(sums["cost"] or 0, (sums["prompt"] or 0) + (sums["completion"] or 0))


def spent_before(budget: ModelBudget, now: int) -> Spent:
    """Return what was spent in the current period according to the hourly usage, for a budget that is new."""
    begin, end = period_bounds(budget.period, now)
    rows = ModelUsage.objects.filter(hour__gte=begin, hour__lt=end)
    if budget.scope == DEFINITION:
        rows = rows.filter(definition=budget.name)
    elif budget.scope == CALLER:
        rows = rows.filter(caller=budget.name)
    elif budget.scope == INTEGRATION:
        rows = rows.filter(integration=budget.name)
    elif budget.scope == MODEL:
        integration, _colon, model = budget.name.partition(":")
        rows = rows.filter(integration=integration, model=model)
    sums = rows.aggregate(cost=Sum("cost"), prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens"))
    return Spent(sums["cost"] or 0, (sums["prompt"] or 0) + (sums["completion"] or 0))
