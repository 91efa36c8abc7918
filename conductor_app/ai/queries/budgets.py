"""The budgets with what is spent of them, and the attempts that wait for them."""

from dataclasses import dataclass, field

from django.db.models import Count

from ...core.budget_periods import RUN, period_bounds
from ...core.snapshot import NEVER
from ...models import BudgetHold, ModelBudget
from ...models.budgets import Reserved, RunLine, Spent, is_counted, reserved_of, spent_below, spent_of

WARNING_SHARE = 0.8
"""The spent share of a budget from which pages warn."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget and its current use. `spent`: None for a budget of runs, which counts each run by itself.

    `room_at`: the end of its period in epoch milliseconds, None for a budget of runs. `waiting`: the number of
    tasks that wait for it. `reserved`: what its open calls may use.
    """

    budget: ModelBudget
    spent: Spent | None
    room_at: int | None
    waiting: int = 0
    reserved: Reserved = field(default_factory=Reserved)

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
    """Return all budgets in the order of their scope and name. Runs three queries."""
    counts = BudgetHold.objects.filter(allowed_by="", until__gt=now).values_list("budget").annotate(Count("pk"))
    waiting = dict(counts.order_by())
    budgets = list(ModelBudget.objects.all())
    counted = [budget for budget in budgets if is_counted(budget)]
    reserved = reserved_of(counted, RunLine(), now) if counted else {}
    return [_state(budget, now, waiting.get(budget.pk, 0), reserved.get(budget.pk)) for budget in budgets]


def run_budget_share(run_id: str, definition: str, root_id: str) -> float | None:
    """Return the spent share of the tightest budget of a run, with the runs below it; None if it has none.

    `root_id`: the run at the top of its tree. A budget of all runs applies to that run. Runs two queries.
    """
    names = ("", definition) if run_id == root_id else (definition,)
    budgets = list(ModelBudget.objects.filter(scope=RUN, name__in=names))
    if not budgets:
        return None
    spent = spent_below(run_id, root_id)
    return max(spent.share_of(budget) for budget in budgets)


def _state(budget: ModelBudget, now: int, waiting: int, reserved: Reserved | None) -> BudgetState:
    if reserved is None:
        return BudgetState(budget, None, None, waiting)
    end = period_bounds(budget.period, now)[1]
    return BudgetState(budget, spent_of(budget, now), end if end < NEVER else None, waiting, reserved)
