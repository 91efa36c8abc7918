"""Views of the budgets of models."""

from typing import Any

from django.http import HttpResponse

from ...settings import conf
from ...utils import clock
from ...web.api import requests as request_body
from ...web.api.operations import NO_CONTENT, ApiOperation, Json
from ...web.api.permissions import ADMINISTRATORS_ONLY
from ...web.api.view import ConductorRequest, ConductorView
from ..commands.budgets import delete_budget, save_budget
from ..queries.budgets import BudgetState, budget_states
from . import serializers
from .serializers import BUDGET, budget_document, parse_budget

Document = dict[str, Any]


class ModelBudgets(ConductorView):
    """GET /api/model-budgets: list all budgets with what is spent of them. PUT: create or replace one.

    A budget is identified by `scope`, `name` and `period`. Amounts are integers in millionths of the currency.
    """

    @ApiOperation("List the budgets of models", ADMINISTRATORS_ONLY, reply=serializers.BUDGETS)
    def get(self, request: ConductorRequest) -> HttpResponse:
        states = budget_states(clock.now())
        return Json({"currency": conf.ai_currency, "budgets": [_state_document(state) for state in states]})

    @ApiOperation("Save a budget of models", ADMINISTRATORS_ONLY, reply=serializers.SAVED_BUDGET, body=BUDGET)
    def put(self, request: ConductorRequest) -> HttpResponse:
        limits, reason = parse_budget(request_body.read_object(request))
        return Json(budget_document(save_budget(limits, request.actor.name, reason)))


class ModelBudgetOne(ConductorView):
    """DELETE /api/model-budgets/{id}: delete a budget. The tasks that wait for it continue."""

    @ApiOperation("Delete a budget of models", ADMINISTRATORS_ONLY, reply=NO_CONTENT)
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
