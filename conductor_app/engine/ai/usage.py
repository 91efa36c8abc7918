"""Record what calls of models use: hourly sums, cost, budgets and metrics."""

from collections.abc import Iterable
from functools import partial

from django.db import transaction

from ... import clock, conf
from ...core.budget_periods import period_bounds
from ...models import IntegrationModel, ModelBudget, ModelCall
from ...models.budgets import is_counted
from ...store import model_usage
from ...telemetry.model_metrics import CallMeasure, observe_call

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
FAILED_STATUSES = ("FAILED", "LOST")


def record_usage(call: ModelCall, budgets: Iterable[ModelBudget]) -> None:
    """Add an ended call to the usage of its hour, and to what is spent of its budgets. Sets the cost of the call.

    Call it once per call, in the transaction that saves its reply or its failure. `budgets`: those that apply to the
    call, locked.
    """
    ended_at = clock.now() if call.ended_at is None else call.ended_at
    duration_ms = max(ended_at - call.started_at, 0)
    failures = int(call.status in FAILED_STATUSES)
    call.cost = cost_of(call)
    if call.cost:
        ModelCall.objects.filter(pk=call.pk).update(cost=call.cost)
    model_usage.add_usage(
        (ended_at - ended_at % HOUR_MS, call.integration, call.model, call.definition, call.caller),
        (1, failures, call.prompt_tokens, call.completion_tokens, call.cost, duration_ms),
    )
    _add_to_budgets(call, budgets, ended_at)
    measure = CallMeasure(
        call.integration,
        call.model,
        call.prompt_tokens,
        call.completion_tokens,
        call.cost,
        duration_ms,
        is_failure=bool(failures),
    )
    transaction.on_commit(partial(observe_call, measure))


def cost_of(call: ModelCall) -> int:
    """Return the cost of a call in millionths of the currency, rounded up; 0 if its model has no price."""
    prices = (
        IntegrationModel.objects.filter(integration=call.integration, name=call.model)
        .values_list("input_price", "output_price")
        .first()
    )
    if prices is None:
        return 0
    thousandfold = call.prompt_tokens * (prices[0] or 0) + call.completion_tokens * (prices[1] or 0)
    return -(-thousandfold // 1000)


def prune_usage(limit: int) -> int:
    """Delete calls and hourly usage whose retention is over. Returns the number of rows."""
    now = clock.now()
    deleted = 0
    if conf.ai_call_days > 0:
        deleted += model_usage.delete_calls(now - conf.ai_call_days * DAY_MS, limit)
    if conf.ai_usage_days > 0:
        deleted += model_usage.delete_usage(now - conf.ai_usage_days * DAY_MS, limit)
    return deleted


def _add_to_budgets(call: ModelCall, budgets: Iterable[ModelBudget], ended_at: int) -> None:
    """Add a call to the budgets that count it. A budget whose period has ended starts again at zero."""
    tokens = call.prompt_tokens + call.completion_tokens
    if not tokens and not call.cost:
        return
    for budget in filter(is_counted, budgets):
        begin, _end = period_bounds(budget.period, ended_at)
        if budget.period_start < begin:
            budget.period_start, budget.spent_cost, budget.spent_tokens = begin, 0, 0
        if budget.period_start == begin:
            budget.spent_cost += call.cost
            budget.spent_tokens += tokens
            budget.save(update_fields=["period_start", "spent_cost", "spent_tokens"])
