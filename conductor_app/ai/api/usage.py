"""Views of what calls of models use, and of their budgets."""

from typing import Any

from django.http import HttpResponse

from ...core.errors import Invalid
from ...settings import conf
from ...utils import clock
from ...utils.formatting import DAY_RANGE, LENGTHS, TimeRange
from ...web.api import requests as request_body
from ...web.api.operations import NO_CONTENT, ApiOperation, Json
from ...web.api.permissions import ADMINISTRATORS_ONLY
from ...web.api.view import ConductorRequest, ConductorView
from ..commands.budgets import delete_budget, save_budget
from ..queries.budgets import BudgetState, budget_states
from ..queries.usage import FILTERS, UsageRow, UsageSums, usage_report
from . import serializers
from .serializers import BUDGET, budget_document, parse_budget

Document = dict[str, Any]


class ModelUsageInsight(ConductorView):
    """GET /api/insight/model-usage: get calls, tokens, cost and durations in a range, and the 20 most expensive calls.

    `range`: `1h`, `24h` (default), `7d` or `30d`. `integration`, `model`, `definition` and `caller` select calls.
    Amounts are integers in millionths of `currency`.
    """

    @ApiOperation(
        "Show what calls of models use",
        permission=ADMINISTRATORS_ONLY,
        reply=serializers.USAGE,
        query={"range": str, **dict.fromkeys(FILTERS, str)},
    )
    def get(self, request: ConductorRequest) -> HttpResponse:
        length = request.query.text("range") or DAY_RANGE
        if length not in LENGTHS:
            raise Invalid(f"The parameter 'range' must be one of {', '.join(LENGTHS)} (got {length[:40]!r}).")
        time_range = TimeRange.aligned(length, clock.now())
        report = usage_report(time_range, {name: request.query.text(name) for name in FILTERS})
        return Json(
            {
                "currency": conf.ai_currency,
                "since": time_range.since,
                "stepMs": time_range.step,
                "total": _sums_document(report.total),
                "steps": [_sums_document(bar) for bar in report.bars],
                "models": _row_documents(report.models, "integration", "model"),
                "definitions": _row_documents(report.definitions, "definition"),
                "callers": _row_documents(report.callers, "caller"),
                "runs": _row_documents(report.runs, "workflowId", "definition"),
            }
        )


class ModelBudgets(ConductorView):
    """GET /api/model-budgets: list all budgets with what is spent of them. PUT: create or replace one.

    A budget is identified by `scope`, `name` and `period`. Amounts are integers in millionths of the currency.
    """

    @ApiOperation("List the budgets of models", permission=ADMINISTRATORS_ONLY, reply=serializers.BUDGETS)
    def get(self, request: ConductorRequest) -> HttpResponse:
        states = budget_states(clock.now())
        return Json({"currency": conf.ai_currency, "budgets": [_state_document(state) for state in states]})

    @ApiOperation(
        "Save a budget of models", permission=ADMINISTRATORS_ONLY, reply=serializers.SAVED_BUDGET, body=BUDGET
    )
    def put(self, request: ConductorRequest) -> HttpResponse:
        limits, reason = parse_budget(request_body.read_object(request))
        return Json(budget_document(save_budget(limits, request.actor.name, reason)))


class ModelBudgetOne(ConductorView):
    """DELETE /api/model-budgets/{id}: delete a budget. The tasks that wait for it continue."""

    @ApiOperation("Delete a budget of models", permission=ADMINISTRATORS_ONLY, reply=NO_CONTENT)
    def delete(self, request: ConductorRequest, budget_id: int) -> None:
        delete_budget(budget_id, request.actor.name)


def _state_document(state: BudgetState) -> Document:
    counted: Document = {}
    if state.spent is not None:
        counted = {
            "spentCost": state.spent.cost,
            "spentTokens": state.spent.tokens,
            "reservedCost": state.reserved.cost,
            "reservedTokens": state.reserved.tokens,
            "isSpent": state.is_spent,
        }
    ends = {} if state.room_at is None else {"periodEndsAt": state.room_at}
    return {**budget_document(state.budget), **counted, **ends, "waitingTasks": state.waiting}


def _sums_document(sums: UsageSums) -> Document:
    return {
        "calls": sums.calls,
        "failures": sums.failures,
        "promptTokens": sums.prompt_tokens,
        "completionTokens": sums.completion_tokens,
        "cost": sums.cost,
        "durationMs": sums.duration_ms,
    }


def _row_documents(rows: Any, *names: str) -> list[Document]:
    def document(row: UsageRow) -> Document:
        return {**dict(zip(names, row.names, strict=True)), **_sums_document(row.sums)}

    return [document(row) for row in rows]
