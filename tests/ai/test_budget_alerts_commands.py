"""An alert on budgets fires when a share of a budget is spent, and clears when a new period begins."""

import pytest

from conductor_app.ai.commands.budgets import BudgetLimits, delete_budget, save_budget
from conductor_app.ai.models import ModelBudget, ModelUsage
from conductor_app.alerts.commands import check_due_alerts, create_target, save_alert, save_view
from conductor_app.alerts.models import Alert, AlertFiring
from conductor_app.alerts.queries import back_test
from conductor_app.core.errors import Invalid
from tests.ai.paying_worker import PayingWorker
from tests.builders import definition, step, sub_workflow
from tests.scenario import Scenario, register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db
HOUR, DAY = 3_600_000, 86_400_000


def limit(scope="DEFINITION", name="w", period="DAY", **limits):
    return save_budget(BudgetLimits(scope, name, period, **limits), "olga")


def watch(percent=80, budget=None, **fields):
    target = create_target("email", "Ann", {"addresses": "ann@example.com"}, "olga")
    view = save_view("Budgets", {}, "olga")
    return save_alert(view, "budget", percent, 60, 1440, "olga", targets=[target.pk], budget=budget, **fields)


def sentences(clock):
    """Check the alerts a minute later, and return all sentences so far."""
    clock.advance(seconds=60)
    with run_commit_hooks():
        check_due_alerts(10)
    return list(AlertFiring.objects.order_by("pk").values_list("sentence", flat=True))


@pytest.fixture
def worker(clock):
    Scenario(clock, *(step(f"call_{number}", "ask") for number in range(5)), name="w")
    return PayingWorker()


def test_an_alert_fires_from_its_share_on(worker, clock):
    limit(max_tokens=2_500)
    watch(80)
    worker.calls_and_reports()
    assert sentences(clock) == []

    worker.calls_and_reports()

    assert sentences(clock) == [
        "Budgets: The budget of workflow `w` is spent to 80 %: 2,000 tokens of 2,500 tokens per day (threshold: 80 %)"
    ]
    assert len(sentences(clock)) == 1


def test_an_alert_on_one_budget_ignores_the_others(worker, clock):
    limit(max_tokens=1_000)
    limit("ALL", "", "MONTH", max_tokens=100_000)
    watch(budget={"scope": "ALL", "name": "", "period": "MONTH"})
    worker.calls_and_reports()

    assert sentences(clock) == []


def test_an_alert_clears_with_the_next_period(worker, clock):
    limit(max_tokens=1_000)
    watch()
    worker.calls_and_reports()
    assert len(sentences(clock)) == 1
    assert Alert.objects.get().incident_at

    clock.advance(seconds=86_400)
    sentences(clock)

    assert Alert.objects.get().incident_at is None


def test_an_alert_clears_when_its_budget_is_deleted(worker, clock):
    budget = limit(max_tokens=1_000)
    watch(budget={"scope": "DEFINITION", "name": "w", "period": "DAY"})
    worker.calls_and_reports()
    assert len(sentences(clock)) == 1

    delete_budget(budget.pk, "olga")
    sentences(clock)

    assert Alert.objects.get().incident_at is None


def test_a_limit_of_cost_is_shown_as_an_amount(clock):
    limit(max_cost=1_000_000)
    ModelBudget.objects.update(period_start=clock.now() - clock.now() % DAY, spent_cost=900_000)
    watch()

    [sentence] = sentences(clock)
    assert sentence.endswith("is spent to 90 %: $0.90 of $1.00 per day (threshold: 80 %)")


@pytest.mark.parametrize("name", ["", "top", "child"])
def test_an_alert_names_the_run_that_has_spent_its_budget(clock, name):
    register_definitions(definition(step("second", "ask"), step("third", "ask"), name="child"))
    run = Scenario(clock, step("first", "ask"), sub_workflow("down", "child"), name="top")
    limit("RUN", name, "RUN", max_tokens=1_200 if name == "child" else 2_400)
    watch()
    worker = PayingWorker()
    worker.calls_and_reports()
    assert sentences(clock) == []
    worker.calls_and_reports()

    spender = run.child("down").id if name == "child" else run.id
    [sentence] = sentences(clock)
    assert f"is spent to 83 % by run {spender}" in sentence


def test_a_back_test_shows_the_share_of_each_hour(clock):
    limit(max_tokens=1_000)
    alert = watch(75, budget={"scope": "DEFINITION", "name": "w", "period": "DAY"})
    noon = clock.now() - clock.now() % HOUR
    for hours_ago, tokens in ((27, 400), (26, 400), (2, 500), (50, 100)):
        names = {"integration": "openai", "model": "small", "definition": "w", "caller": ""}
        ModelUsage.objects.create(hour=noon - hours_ago * HOUR, **names, prompt_tokens=tokens)

    tested = back_test(alert, clock.now())

    assert max(value for _, value in tested.points) == 80
    assert tested.points[-1][1] == 50
    assert [percent for _, percent in tested.firings] == [80]
    assert tested.limit == 75


@pytest.mark.parametrize("percent", [0, 101])
def test_the_share_is_from_1_to_100(clock, percent):
    with pytest.raises(Invalid, match="must be 1 to 100"):
        watch(percent)


def test_an_unknown_budget_is_refused(clock):
    with pytest.raises(Invalid, match="There is no such budget"):
        watch(budget={"scope": "ALL", "name": "", "period": "DAY"})
