"""The pages of usage and budgets, and what other pages say about calls of models."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conductor_app.access.models import AuditEntry
from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.ai.commands.calls import Estimate, Usage, save_reply
from conductor_app.ai.commands.prompts import PromptTrial, begin_trial
from conductor_app.ai.models import BudgetHold, IntegrationModel, ModelBudget
from conductor_app.definitions.models import WorkflowDefinition
from tests.ai.paying_worker import PayingWorker, settings_of
from tests.builders import step
from tests.page_text import html, page_text, run_url
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db
USAGE, BUDGETS = "/admin/model-usage/", "/admin/budgets/"


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


def test_the_usage_shows_cost_tokens_and_calls_by_model_workflow_caller_and_run(viewer, worker, run):
    worker.calls_and_reports()
    worker.calls_and_reports()

    for length in ("1h", "24h", "7d", "30d"):
        page = page_text(viewer.get(f"{USAGE}?range={length}"))
        assert "Cost $2.80 Tokens 2,000 Calls 2 Failed calls 0" in page
        for name in ("openai:small", "agent Runs", "a test"):
            assert f"{name} $2.80 2,000 2 0" in page
    assert "A-7" in page


@pytest.mark.parametrize(
    ("show", "words"), [("cost", "$2"), ("tokens", "Prompt"), ("calls", "With a reply"), ("duration", "Mean duration")]
)
def test_the_chart_shows_the_chosen_measure(viewer, worker, show, words):
    worker.calls_and_reports()
    page = html(viewer.get(f"{USAGE}?range=1h&show={show}"))

    assert words in page
    assert f'show={show}" aria-current="true"' in page


def test_filters_select_calls_and_can_be_removed(viewer, worker):
    worker.calls_and_reports()

    page = html(viewer.get(f"{USAGE}?definition=agent&integration=openai"))
    assert 'href="?integration=openai"' in page
    assert "openai:small" in page
    assert "No call matches the filters" in html(viewer.get(f"{USAGE}?definition=other"))


def test_calls_outside_of_runs_have_a_row_and_no_run(viewer, worker):
    trial = PromptTrial("Hi", {}, settings_of(), by="olga")
    save_reply(begin_trial(trial, Estimate()), None, Usage(12, 5))

    for length in ("1h", "24h"):
        page = page_text(viewer.get(f"{USAGE}?range={length}"))
        assert "outside of runs $0.022 17 1 0" in page
        assert "olga $0.022 17 1 0" in page


def test_without_calls_the_page_says_what_would_be_counted(viewer):
    assert "No AI step has called a model in this range." in page_text(viewer.get(USAGE))


def test_a_call_in_progress_is_not_counted(viewer, worker):
    worker.calls_and_reports()
    worker.polls()

    assert "Calls 1" in page_text(viewer.get(f"{USAGE}?range=1h"))


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (1_250, "is spent to 80 %: 1,000 tokens of 1,250 tokens until 2027-03-02 00:00:00 UTC."),
        (1_000, "is spent: 1,000 tokens of 1,000 tokens. Calls wait until 2027-03-02 00:00:00 UTC."),
    ],
)
def test_a_budget_that_is_nearly_spent_is_announced(viewer, worker, tokens, sentence):
    limit(max_tokens=tokens)
    worker.calls_and_reports()

    assert f"The budget of workflow agent {sentence}" in page_text(viewer.get(USAGE))


def test_a_budget_with_room_is_not_announced(viewer, worker):
    limit(max_tokens=1_300)
    worker.calls_and_reports()

    assert "The budget of" not in page_text(viewer.get(USAGE))


def test_the_number_of_statements_does_not_depend_on_the_number_of_calls(
    viewer, worker, run, django_assert_num_queries
):

    worker.calls_and_reports()
    viewer.get(USAGE)
    with CaptureQueriesContext(connection) as few:
        viewer.get(USAGE)
    for number in range(5):
        run.starts("agent")
        worker.calls_and_reports()
        worker.model = f"model {number}"
    with CaptureQueriesContext(connection) as many:
        viewer.get(USAGE)

    assert len(many) == len(few)


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


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "A budget needs a limit of cost or of tokens."),
        ({"max_cost": "ten"}, "Not a valid number: 'ten'."),
        ({"max_cost": "nan"}, "The cost must be from 0 to"),
        ({"max_cost": "-1"}, "The cost must be from 0 to"),
        ({"max_cost": "1e400"}, "The cost must be from 0 to"),
        ({"max_tokens": "many"}, "Not a valid number of tokens"),
        ({"max_tokens": "1", "name": ""}, "needs a name"),
        ({"max_tokens": "1", "scope": "SERVER"}, "Select what the budget applies to"),
        ({"max_tokens": "1", "period": "RUN"}, "period RUN"),
    ],
)
def test_an_invalid_form_is_refused_with_what_to_do(operator, form, message):
    assert message in page_text(save(operator, **form))
    assert not ModelBudget.objects.exists()


@pytest.mark.parametrize(
    "form",
    [
        {"do": "remove", "budget": "9"},
        {"do": "remove", "budget": "x"},
        {"do": "allow", "attempt": "x"},
        {"do": "allow"},
    ],
)
def test_a_form_about_something_that_does_not_exist_is_refused(operator, form):
    assert operator.post(BUDGETS, form, follow=True).status_code == 200


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

    assert "conductor.change_modelbudget" in page_text(viewer.get(BUDGETS))
    assert viewer.post(BUDGETS, {"do": "save"}).status_code == 403
    assert ModelBudget.objects.count() == 1


@pytest.mark.parametrize("address", [USAGE, BUDGETS, "/admin/vector-indexes/"])
def test_the_pages_require_their_permission(client, django_user_model, address):
    client.force_login(django_user_model.objects.create_user("nina", is_staff=True))

    assert client.get(address).status_code == 403


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
