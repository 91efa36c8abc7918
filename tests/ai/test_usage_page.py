"""The page of budgets, and what other pages say about calls of models."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.ai.models import BudgetHold, IntegrationModel, ModelBudget
from conductor_app.definitions.models import WorkflowDefinition
from tests.access.users import client_with
from tests.ai.paying_worker import PayingWorker
from tests.builders import step
from tests.page_text import html, page_text, run_url
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
BUDGETS = "/admin/budgets/"


@pytest.fixture
def run(clock):
    return Scenario(clock, step("first", "ask"), step("second", "ask"), name="agent", input={"order": "A-7"})


@pytest.fixture
def worker(run):
    IntegrationModel.objects.create(integration="openai", name="small", input_price=1_000_000, output_price=2_000_000)
    return PayingWorker()


def limit(scope="DEFINITION", name="agent", period="DAY", **limits):
    return save_budget(BudgetLimits(scope, name, period, **limits), "olga")


def save(client, **form):
    fields = {"do": "save", "scope": "DEFINITION", "name": "agent", "period": "DAY"} | form
    return client.post(BUDGETS, fields, follow=True)


def test_the_budgets_show_the_spent_share_and_the_waiting_tasks(viewer, worker):
    limit(max_tokens=1_000, max_cost=2_000_000)
    limit("RUN", "", "RUN", max_tokens=9_000)
    worker.calls_and_reports()
    assert worker.is_held()

    page = page_text(viewer.get(BUDGETS))
    assert "Workflow agent Day $1.40 of $2.00 1,000 of 1,000 100 % spent 1 olga" in page
    assert "Each run Run – 9,000 per run 0" in page
    assert 'low="80" high="99.9" optimum="0" value="100"' in " ".join(html(viewer.get(BUDGETS)).split())


def test_an_operator_saves_edits_and_deletes_a_budget(operator):
    assert "Budget saved." in page_text(save(operator, max_cost="12.5", max_tokens="1000", reason="a trial"))
    budget = ModelBudget.objects.get()
    assert (budget.max_cost, budget.max_tokens, budget.updated_by) == (12_500_000, 1_000, "olga")
    form = html(operator.get(f"{BUDGETS}?edit={budget.pk}"))
    assert 'value="12.5"' in form
    assert '<option value="DEFINITION" selected>' in form

    save(operator, max_cost="", max_tokens="2000")
    assert (ModelBudget.objects.get().max_cost, ModelBudget.objects.get().max_tokens) == (None, 2_000)

    deleted = operator.post(BUDGETS, {"do": "remove", "budget": budget.pk}, follow=True)
    assert "Budget deleted." in page_text(deleted)
    assert [entry.action for entry in AuditEntry.objects.filter(object_type="budget").order_by("id")] == [
        *("save", "save", "delete"),
    ]


def test_an_invalid_form_is_refused_with_what_to_do(operator):
    for form, message in [
        ({}, "A budget needs a limit of cost or of tokens."),
        ({"max_cost": "ten"}, "Not a valid number: 'ten'."),
        ({"max_cost": "nan"}, "The cost must be from 0 to"),
        ({"max_cost": "-1"}, "The cost must be from 0 to"),
        ({"max_cost": "1e400"}, "The cost must be from 0 to"),
        ({"max_tokens": "many"}, "Not a valid number of tokens"),
        ({"max_tokens": "1", "name": ""}, "needs a name"),
        ({"max_tokens": "1", "scope": "SERVER"}, "Select what the budget applies to"),
        ({"max_tokens": "1", "period": "RUN"}, "period RUN"),
    ]:
        assert message in page_text(save(operator, **form)), form
        assert not ModelBudget.objects.exists(), form


def test_a_form_about_something_that_does_not_exist_is_refused(operator):
    for form in [
        {"do": "remove", "budget": "9"},
        {"do": "remove", "budget": "x"},
        {"do": "allow", "attempt": "x"},
        {"do": "allow"},
    ]:
        assert operator.post(BUDGETS, form, follow=True).status_code == 200, form


def test_a_budget_of_each_run_needs_no_period(operator):
    save(operator, scope="RUN", period="DAY", name="", max_tokens="9")

    assert (ModelBudget.objects.get().scope, ModelBudget.objects.get().period) == ("RUN", "RUN")


def test_the_limit_of_an_integration_is_shown_and_cannot_be_edited_here(operator):
    IntegrationModel.objects.create(integration="openai", name="large", max_tokens=5_000, frequency="daily")
    page = html(operator.get(BUDGETS))

    assert "openai:large" in page
    assert '<a href="/admin/integrations/of/openai/">Token limit of the model</a>' in page
    assert 'value="remove"' not in page


def test_a_viewer_sees_budgets_and_cannot_change_them(viewer):
    limit(max_tokens=5)

    assert "you need the permission to change model budgets" in page_text(viewer.get(BUDGETS))
    assert viewer.post(BUDGETS, {"do": "save"}).status_code == 403
    assert ModelBudget.objects.count() == 1


@pytest.mark.parametrize("address", [BUDGETS, "/admin/vector-indexes/"])
def test_the_pages_require_their_permission(db, address):
    assert client_with().get(address).status_code == 403


def test_the_page_of_a_run_shows_its_calls_and_the_share_of_its_budget(viewer, worker, run):
    assert "<dt>AI</dt>" not in html(viewer.get(run_url(run.row)))
    worker.calls_and_reports()
    assert "AI 1 call, 1,000 tokens, $1.40" in page_text(viewer.get(run_url(run.row)))

    limit("RUN", "agent", "RUN", max_tokens=4_000)
    assert "AI 1 call, 1,000 tokens, $1.40 (25 % of its budget)" in page_text(viewer.get(run_url(run.row)))


def test_an_operator_allows_a_held_call_on_the_page_of_the_run(operator, viewer, worker, run):
    limit(max_tokens=1_000)
    worker.calls_and_reports()
    assert worker.is_held()
    assert "Allow this call" not in page_text(viewer.get(run_url(run.row)))
    page = operator.get(run_url(run.row))
    assert "Allow this call" in page_text(page)
    assert "budget of workflow agent is spent" in page_text(page)

    answer = operator.post(BUDGETS, {"do": "allow", "attempt": run.task("second").pk})
    assert answer.url == run_url(run.row)
    assert not worker.is_held()
    assert not BudgetHold.objects.exists()


def test_the_page_of_a_definition_shows_the_usage_of_its_runs(viewer, worker, run):
    address = f"/admin/conductor/workflowdefinition/{WorkflowDefinition.objects.get(name='agent').pk}/change/"
    assert "Calls of models" not in page_text(viewer.get(address))
    worker.calls_and_reports()

    assert "Last 30 days: 1 call, 1,000 tokens, $1.40" in page_text(viewer.get(address))
