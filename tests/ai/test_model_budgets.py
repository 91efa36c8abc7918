"""Usage and budgets of models through the API."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.ai.models import IntegrationModel, ModelBudget, ModelCall, ModelUsage
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


def test_the_usage_of_a_range_is_returned_in_total_in_steps_and_by_name(api):
    hour = clock.now() - clock.now() % HOUR
    names = {"integration": "openai", "model": "small", "definition": "agent", "caller": "olga"}
    ModelUsage.objects.create(hour=hour, **names, calls=2, failures=1, prompt_tokens=30, cost=9, duration_ms=400)
    ModelUsage.objects.create(hour=hour, **{**names, "definition": "other"}, calls=1, prompt_tokens=5)

    usage = api.get("/insight/model-usage?definition=agent").json()
    sums = {"calls": 2, "failures": 1, "promptTokens": 30, "completionTokens": 0, "cost": 9, "durationMs": 400}
    assert (usage["currency"], usage["total"], usage["steps"][-1], len(usage["steps"])) == ("USD", sums, sums, 24)
    assert usage["models"] == [{"integration": "openai", "model": "small", **sums}]
    assert usage["callers"] == [{"caller": "olga", **sums}]
    assert api.get("/insight/model-usage").json()["total"]["calls"] == 3


def test_an_unknown_range_is_refused(api):
    answer = api.get("/insight/model-usage?range=1y")

    assert (answer.status_code, "must be one of 1h, 24h, 7d, 30d" in answer.json()["message"]) == (400, True)
    assert ModelCall.objects.count() == 0
