"""The budgets with what is spent of them, and the attempts that wait for them."""

from dataclasses import dataclass

from django.db.models import Count

from ...core.budget_periods import period_bounds
from ...core.snapshot import NEVER
from ...models import BudgetHold, ModelBudget
from ...models.budgets import Spent, is_counted, spent_by_run, spent_of

WARNING_SHARE = 0.8
"""The spent share of a budget from which pages warn."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget and its current use. `spent`: None for a budget of runs, which counts each run by itself.

    `room_at`: the end of its period in epoch milliseconds, None for a budget of runs. `waiting`: the number of
    tasks that wait for it.
    """

    budget: ModelBudget
    spent: Spent | None
    room_at: int | None
    waiting: int = 0

    @property
    def share(self) -> float | None:
        """Return the spent share of its limit, or None if it is not counted."""
        return None if self.spent is None else self.spent.share_of(self.budget)

    @property
    def is_spent(self) -> bool:
        return self.spent is not None and self.spent.exhausts(self.budget)

    @property
    def is_nearly_spent(self) -> bool:
        """Return True from WARNING_SHARE on."""
        return self.share is not None and self.share >= WARNING_SHARE


def budget_states(now: int) -> list[BudgetState]:
    """Return all budgets in the order of their scope and name. Runs two queries."""
    counts = BudgetHold.objects.filter(allowed_by="", until__gt=now).values_list("budget").annotate(Count("pk"))
    waiting = dict(counts.order_by())
    return [_state(budget, now, waiting.get(budget.pk, 0)) for budget in ModelBudget.objects.all()]


def run_budget_share(run_id: str, definition: str) -> float | None:
    """Return the spent share of the tightest budget of a run, or None if it has none. Runs two queries."""
    budgets = list(ModelBudget.objects.filter(scope="RUN", name__in=("", definition)))
    if not budgets:
        return None
    spent = spent_by_run(run_id)
    return max(spent.share_of(budget) for budget in budgets)


def _state(budget: ModelBudget, now: int, waiting: int) -> BudgetState:
    if not is_counted(budget):
        return BudgetState(budget, None, None, waiting)
    end = period_bounds(budget.period, now)[1]
    return BudgetState(budget, spent_of(budget, now), end if end < NEVER else None, waiting)
