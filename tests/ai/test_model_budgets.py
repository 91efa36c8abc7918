"""Budgets of models through the API."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.ai.models import IntegrationModel, ModelBudget
from conductor_app.utils import clock

HOUR = 3_600_000
BUDGET = {"scope": "DEFINITION", "name": "agent", "period": "DAY", "maxCost": 5_000_000}


def test_a_budget_is_saved_listed_and_deleted(api):
    saved = api.put("/model-budgets", {**BUDGET, "reason": "a trial"}).json()
    assert saved["maxCost"] == 5_000_000

    [listed] = api.get("/model-budgets").json()["budgets"]
    assert {**BUDGET, "id": saved["id"]}.items() <= listed.items()
    assert (listed["spentCost"], listed["isSpent"], listed["waitingTasks"]) == (0, False, 0)
    assert listed["periodEndsAt"] > clock.now()

    again = api.put("/model-budgets", {**BUDGET, "maxTokens": 7}).json()
    assert (again["id"], again["maxTokens"]) == (saved["id"], 7)
    assert api.delete(f"/model-budgets/{saved['id']}").status_code == 204
    assert not ModelBudget.objects.exists()
    assert AuditEntry.objects.filter(object_type="budget").count() == 3


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "The field 'scope' of a budget is missing."),
        ({**BUDGET, "period": None}, "The field 'period' of a budget is missing."),
        ({**BUDGET, "maxCost": None}, "A budget needs a limit of cost or of tokens."),
        ({**BUDGET, "name": ""}, "needs a name"),
        ({**BUDGET, "maxCost": -1}, "`maxCost` must be from 0"),
        ({**BUDGET, "maxCost": 2**62}, "`maxCost` must be from 0"),
    ],
)
def test_an_invalid_budget_is_refused(api, document, message):
    answer = api.put("/model-budgets", document)

    assert answer.status_code == 400
    assert message in answer.json()["message"]


@pytest.mark.parametrize("document", [{**BUDGET, "scope": "MOON"}, {**BUDGET, "maxCost": "much"}])
def test_invalid_fields_are_named(api, document):
    assert api.put("/model-budgets", document).status_code == 400
    assert not ModelBudget.objects.exists()


def test_an_unknown_budget_cannot_be_deleted(api):
    assert api.delete("/model-budgets/7").status_code == 404
    assert api.delete(f"/model-budgets/{2**70}").status_code == 404


def test_the_limit_of_an_integration_cannot_be_deleted_here(api):
    IntegrationModel.objects.create(integration="openai", name="small", max_tokens=5, frequency="daily")
    [listed] = api.get("/model-budgets").json()["budgets"]

    assert listed["isOfIntegration"] is True
    assert api.delete(f"/model-budgets/{listed['id']}").status_code == 400
