"""Decide whether budgets have room for a call. Open calls count with what they may cost.

A call reserves its estimate in its own row, in the transaction that checks the budgets, and settles it when it ends.
Nothing else has to be released: a call whose process has ended stops counting when its attempt is claimed again, and at
the latest when the longest duration of a call has passed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from ... import clock
from ...core.budget_periods import RUN, period_bounds
from ...core.snapshot import NEVER
from ...models import BudgetHold, ModelBudget
from ...models.budgets import (
    BudgetedCall,
    Reserved,
    Spent,
    budgets_for,
    is_counted,
    reserved_of,
    spent_below,
    spent_of,
)
from .integration_settings import ModelSettings

RELEASED_AT_ONCE = 20
"""The holds that the end of a call releases. Each end of a call releases as many more."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call may use at most. `cost`: in millionths of the currency."""

    cost: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class FullBudget:
    """A budget without room for a call. `room_at`: when it may have room again, unless it is changed.

    `reserved`: what its open calls may use. None if the budget is spent, so that no call may begin. `lacks`: the
    limit that is too tight beside them: cost or tokens.
    """

    budget: ModelBudget
    spent: Spent
    room_at: int
    reserved: Spent | None = None
    lacks: str = ""

    def facts(self) -> dict[str, Any]:
        """Return what pages show of the budget while an attempt waits for it."""
        facts = {
            "scope": self.budget.scope,
            "name": self.budget.name,
            "period": self.budget.period,
            "by": self.budget.updated_by,
            "max_cost": self.budget.max_cost,
            "max_tokens": self.budget.max_tokens,
            "spent_cost": self.spent.cost,
            "spent_tokens": self.spent.tokens,
            "room_at": self.room_at if self.room_at < NEVER else None,
        }
        if self.reserved is not None:
            facts |= {
                "reserved_cost": self.reserved.cost,
                "reserved_tokens": self.reserved.tokens,
                "lacks": self.lacks,
            }
        return facts


def estimate_call(settings: ModelSettings, prompt_tokens: int, completion_tokens: int) -> Estimate:
    """Return what a call may use, with the prices of its model. A model without prices costs nothing."""
    thousandfold = prompt_tokens * (settings.input_price or 0) + completion_tokens * (settings.output_price or 0)
    return Estimate(-(-thousandfold // 1000), prompt_tokens + completion_tokens)


def lock_budgets(call: BudgetedCall) -> list[ModelBudget]:
    """Return the budgets that apply to a call, locked until the end of the transaction.

    They are locked in one order, so that parallel calls cannot deadlock.
    """
    return list(budgets_for(call).order_by("pk").select_for_update())


def find_full_budget(call: BudgetedCall, estimate: Estimate, now: int) -> FullBudget | None:
    """Return the budget without room for a call that the call has to wait for longest; None if all have room.

    A budget has room while it is not spent, and what is spent, what open calls have reserved and the estimate are
    within its limits together. If no other call is open, the estimate need not fit, so that a call whose estimate
    exceeds the limit can begin. The budgets are locked until the end of the transaction.
    """
    budgets = lock_budgets(call)
    if not budgets:
        return None
    reserved = reserved_of(budgets, call.line, now)
    full = [each for budget in budgets if (each := _check(budget, call, estimate, reserved[budget.pk], now))]
    return max(full, key=lambda each: (each.reserved is None, each.room_at), default=None)


def release_waiting_calls(budgets: Collection[ModelBudget], root_id: str) -> None:
    """Let the attempts be checked again that wait for the end of a call. `budgets`: those of the call, locked.

    `root_id`: the top of the tree of its run. A budget of runs has room again for this tree only.
    """
    if not budgets:
        return
    now = clock.now()
    waiting = BudgetHold.objects.filter(budget__in=budgets, waits_for_calls=True, allowed_by="", until__gt=now)
    waiting = waiting.filter(~Q(budget__scope=RUN) | Q(root_id=root_id)).order_by("held_at", "pk")
    # A hold that another transaction has locked is being released.
    oldest = waiting.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
    if found := list(oldest[:RELEASED_AT_ONCE]):
        BudgetHold.objects.filter(pk__in=found).update(until=now)


def _check(
    budget: ModelBudget, call: BudgetedCall, estimate: Estimate, reserved: Reserved, now: int
) -> FullBudget | None:
    spent = spent_of(budget, now) if is_counted(budget) else _spent_by_runs(budget, call)
    if spent.exhausts(budget):
        return FullBudget(budget, spent, period_bounds(budget.period, now)[1])
    amounts = (
        ("cost", budget.max_cost, spent.cost, reserved.cost, estimate.cost),
        ("tokens", budget.max_tokens, spent.tokens, reserved.tokens, estimate.tokens),
    )
    for name, limit, used, held, more in amounts:
        if limit is not None and held and more and used + held + more > limit:
            return FullBudget(budget, spent, reserved.until, Spent(reserved.cost, reserved.tokens), name)
    return None


def _spent_by_runs(budget: ModelBudget, call: BudgetedCall) -> Spent:
    return spent_below(call.line.limited_run(budget), call.line.root_id)
