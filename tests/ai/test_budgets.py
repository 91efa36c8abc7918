"""A call waits while a budget is spent, and continues when the budget has room again."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.ai.commands import budgets
from conductor_app.ai.commands.budgets import BudgetLimits, delete_budget, save_budget
from conductor_app.ai.commands.calls import Estimate, find_full_budget
from conductor_app.ai.models import BudgetHold, IntegrationModel, ModelBudget
from conductor_app.ai.store import BudgetedCall, RunLine
from conductor_app.core.errors import Invalid, NotFound
from conductor_app.explanations.cause import current_steps, run_cause
from conductor_app.runs.models import Attempt
from conductor_app.tasks.queries.waiting import closed_gates, verdicts_on
from conductor_app.tasks.store import find_candidates
from tests.ai.paying_worker import PayingWorker
from tests.builders import policy, step
from tests.scenario import Scenario, explain_attempt, run_commit_hooks

pytestmark = pytest.mark.django_db
HOUR, DAY = 3_600, 86_400
# The clock stands at noon of Monday, 1 March 2027.


@pytest.fixture
def worker():
    return PayingWorker()


def limit(scope="DEFINITION", name="w", period="DAY", **limits):
    return save_budget(BudgetLimits(scope, name, period, **limits), "olga")


def two_calls(clock, **fields):
    return Scenario(clock, step("first", "ask"), step("second", "ask"), name="w", **fields)


def budget_sentence(attempt):
    return {each.gate: each.sentence for each in closed_gates(explain_attempt(attempt.pk))}["budget"]


@pytest.fixture
def waiting_run(clock, worker):
    """A run whose second call waits for the budget of its workflow."""
    run = two_calls(clock)
    limit(max_tokens=1_000)
    worker.calls_and_reports()
    assert worker.is_held()
    return run


def test_a_call_within_its_budget_is_not_held(clock, worker):
    run = two_calls(clock)
    limit(max_tokens=1_001)
    worker.calls_and_reports()
    worker.calls_and_reports()

    assert run.status == "COMPLETED"


def test_a_call_waits_in_its_queue_while_the_budget_is_spent(waiting_run, clock, worker):
    attempt = waiting_run.task("second")

    assert (attempt.status, attempt.number, waiting_run.status) == ("PENDING", 0, "RUNNING")
    assert worker.polls() == []
    assert worker.calls == 1


def test_the_page_says_which_budget_is_spent_and_what_to_do(waiting_run, clock):
    [sentence] = [
        each.sentence for each in closed_gates(explain_attempt(waiting_run.task("second").pk)) if each.gate == "budget"
    ]

    assert sentence == (
        "The budget of workflow `w` is spent: 1,000 tokens of 1,000 tokens, set by olga. It has room again at "
        "2027-03-02 00:00:00 UTC. To continue earlier, raise the budget or allow this call once."
    )


def test_the_cause_of_the_run_and_the_list_of_runs_name_the_budget(waiting_run, clock):
    assert run_cause(waiting_run.row).sentence.startswith(
        "Waiting: `second` — the budget of workflow `w` is spent: 1,000 tokens of 1,000 tokens"
    )
    assert current_steps([waiting_run.row], clock.now())[waiting_run.id].words == "budget spent"


def test_the_wait_ends_with_the_day(waiting_run, clock, worker):
    waiting_run.later(12 * HOUR - 1)
    assert worker.polls() == []

    waiting_run.later(1)
    worker.calls_and_reports()

    assert waiting_run.status == "COMPLETED"
    assert not BudgetHold.objects.exists()


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_the_gate_is_closed_to_the_last_millisecond_of_the_wait(waiting_run, clock, ahead):
    attempt = waiting_run.task("second")
    Attempt.objects.filter(pk=attempt.pk).update(visible_at=clock.now() + ahead)
    BudgetHold.objects.update(until=clock.now() + ahead)
    attempt.refresh_from_db()

    is_open = {each.gate: each.is_open for each in verdicts_on(attempt, clock.now())}
    candidates = [each.id for each in find_candidates("ask", "worker", clock.now(), 10)]
    assert is_open["budget"] is (candidates == [attempt.pk]) is (ahead <= 0)


def test_the_gate_never_closes_for_an_attempt_that_a_worker_can_claim(waiting_run, clock):
    attempt = waiting_run.task("second")
    Attempt.objects.filter(pk=attempt.pk).update(visible_at=clock.now())
    attempt.refresh_from_db()

    assert {each.gate: each.is_open for each in verdicts_on(attempt, clock.now())}["budget"]


def test_a_raised_budget_releases_the_calls_that_wait_for_it(waiting_run, clock, worker):
    limit(max_tokens=5_000)
    waiting_run.later(0)

    worker.calls_and_reports()
    assert waiting_run.status == "COMPLETED"


def test_a_deleted_budget_releases_the_calls_that_wait_for_it(waiting_run, clock, worker):
    delete_budget(ModelBudget.objects.get().pk, "olga", "not needed")
    waiting_run.later(0)

    worker.calls_and_reports()
    assert waiting_run.status == "COMPLETED"
    entry = AuditEntry.objects.filter(object_type="budget").latest("id")
    assert (entry.actor, entry.action, entry.reason, entry.facts["max_tokens"]) == (
        "olga",
        "delete",
        "not needed",
        1_000,
    )


def test_a_budget_that_is_raised_too_little_holds_the_call_again(waiting_run, clock, worker):
    limit(max_tokens=999)
    waiting_run.later(0)

    assert worker.is_held()
    assert BudgetHold.objects.get().facts["max_tokens"] == 999


def test_an_operator_may_allow_one_call(waiting_run, clock, worker):
    with run_commit_hooks():
        budgets.allow_once(waiting_run.task("second").pk, "olga", "urgent")
    waiting_run.later(60)

    assert not worker.is_held()
    worker.pays()
    worker.completes()
    assert waiting_run.status == "COMPLETED"
    entry = AuditEntry.objects.get(action="allow model call")
    assert (entry.actor, entry.reason, entry.facts["budget"]["name"]) == ("olga", "urgent", "w")


def test_the_permission_is_for_one_call_only(clock, worker):
    run = Scenario(clock, step("first", "ask"), step("second", "ask"), step("third", "ask"), name="w")
    limit(max_tokens=1_000)
    worker.calls_and_reports()
    assert worker.is_held()
    with run_commit_hooks():
        budgets.allow_once(run.task("second").pk, "olga")
    worker.calls_and_reports()

    assert worker.is_held()
    assert run.is_waiting_for("third")


def test_only_a_held_call_can_be_allowed(clock):
    run = two_calls(clock)

    with pytest.raises(NotFound, match="does not wait for a budget"):
        budgets.allow_once(run.task("first").pk, "olga")


def test_a_stored_reply_is_used_although_the_budget_is_spent(clock, worker):
    run = two_calls(clock)
    limit(max_tokens=1_000)
    worker.polls()
    worker.pays()
    # The process dies between the reply and the report. Another one claims the task when the lease has expired.
    Attempt.objects.update(status="PENDING", visible_at=clock.now(), lease_ends_at=None)
    worker.held = None

    assert not worker.is_held()
    worker.completes()
    assert run.is_waiting_for("second")


def test_a_run_that_is_terminated_leaves_no_hold(waiting_run, clock):
    waiting_run.terminate()
    waiting_run.later(0)
    budgets.prune_holds()

    assert not BudgetHold.objects.exists()


def test_a_pending_hold_is_not_pruned(waiting_run):
    assert budgets.prune_holds() == 0


@pytest.mark.parametrize(
    ("scope", "name", "period"),
    [
        ("ALL", "", "DAY"),
        ("RUN", "", "RUN"),
        ("RUN", "w", "RUN"),
        ("DEFINITION", "w", "WEEK"),
        ("CALLER", "ann", "MONTH"),
        ("INTEGRATION", "openai", "DAY"),
        ("MODEL", "openai:small", "DAY"),
    ],
)
def test_each_scope_limits_its_calls(clock, worker, scope, name, period):
    two_calls(clock)
    limit(scope, name, period, max_tokens=1_000)
    worker.calls_and_reports()

    assert worker.is_held()


@pytest.mark.parametrize(
    ("scope", "name", "period"),
    [
        ("RUN", "another", "RUN"),
        ("DEFINITION", "another", "WEEK"),
        ("CALLER", "another", "MONTH"),
        ("INTEGRATION", "anthropic", "DAY"),
        ("MODEL", "openai:large", "DAY"),
    ],
)
def test_a_budget_of_others_does_not_hold_a_call(clock, worker, scope, name, period):
    two_calls(clock)
    limit(scope, name, period, max_tokens=0)

    assert not worker.is_held()


def test_a_budget_of_runs_counts_each_run_by_itself(clock, worker):
    run = two_calls(clock)
    limit("RUN", "w", "RUN", max_tokens=1_000)
    worker.calls_and_reports()
    run.starts("w")

    held = [worker.is_held(), worker.is_held()]
    assert sorted(held) == [False, True]


def test_a_call_that_only_more_budget_can_release_waits_without_an_end(clock, worker):
    run = two_calls(clock)
    limit("RUN", "", "RUN", max_tokens=1_000)
    worker.calls_and_reports()
    assert worker.is_held()

    [sentence] = [
        each.sentence for each in closed_gates(explain_attempt(run.task("second").pk)) if each.gate == "budget"
    ]
    assert sentence.endswith("set by olga. To continue, raise the budget or allow this call once.")
    run.later(100 * DAY)
    assert worker.polls() == []


def test_a_limit_of_cost_holds_calls(clock, worker):
    two_calls(clock)
    IntegrationModel.objects.create(integration="openai", name="small", input_price=1_000_000, output_price=2_000_000)
    limit(max_cost=1_400_000)
    worker.calls_and_reports()

    assert worker.is_held()
    facts = BudgetHold.objects.get().facts
    assert (facts["spent_cost"], facts["max_cost"]) == (1_400_000, 1_400_000)


def test_a_new_budget_counts_what_was_spent_before_in_its_period(clock, worker):
    run = two_calls(clock)
    worker.calls_and_reports()
    limit(max_tokens=1_000)

    assert worker.is_held()
    assert ModelBudget.objects.get().spent_tokens == 1_000
    run.later(0)


def test_a_new_period_begins_at_zero(clock, worker):
    Scenario(clock, step("a", "ask"), step("b", "ask"), step("c", "ask"), name="w").later(0)
    limit(max_tokens=1_500)
    worker.calls_and_reports()
    clock.advance(seconds=12 * HOUR)
    worker.calls_and_reports()

    assert not worker.is_held()
    assert ModelBudget.objects.get().spent_tokens == 1_000


def test_the_token_limit_of_a_model_of_an_integration_is_a_budget(clock, worker):
    two_calls(clock)
    model = IntegrationModel.objects.create(integration="openai", name="small", max_tokens=1_000, frequency="weekly")
    worker.calls_and_reports()
    assert worker.is_held()

    budget = ModelBudget.objects.get()
    assert (budget.scope, budget.name, budget.period, budget.max_tokens) == ("MODEL", "openai:small", "WEEK", 1_000)
    with pytest.raises(Invalid, match="The integration sets this budget"):
        delete_budget(budget.pk, "olga")
    model.max_tokens = None
    model.save()
    assert not ModelBudget.objects.exists()


def test_another_frequency_of_a_model_replaces_its_budget(clock):
    model = IntegrationModel.objects.create(integration="openai", name="small", max_tokens=1_000, frequency="weekly")
    model.frequency = "monthly"
    model.save()
    assert [budget.period for budget in ModelBudget.objects.all()] == ["MONTH"]

    model.delete()
    assert not ModelBudget.objects.exists()


def test_a_call_that_a_change_of_the_budget_overtook_is_checked_again(clock, worker, monkeypatch):
    run = two_calls(clock)
    budget = limit(max_tokens=0)
    found = budgets.find_full_budget

    def find_and_raise(*of):
        spent = found(*of)
        save_budget(BudgetLimits("DEFINITION", "w", "DAY", max_tokens=9_000), "olga")
        return spent

    with monkeypatch.context() as patch:
        patch.setattr(budgets, "find_full_budget", find_and_raise)
        assert worker.is_held()
    run.later(0)

    assert not worker.is_held()
    assert budget.pk == ModelBudget.objects.get().pk


def test_a_task_that_ended_while_its_budget_was_checked_is_not_held(clock, worker):
    run = two_calls(clock)
    limit(max_tokens=0)
    worker.polls()
    run.terminate()

    assert not worker.begins()
    assert not BudgetHold.objects.exists()


def test_the_poll_timeout_does_not_expire_during_the_wait(clock, worker):
    run = Scenario(clock, step("first", "ask", policy=policy(poll_seconds=60)), name="w")
    limit(max_tokens=0)
    assert worker.is_held()
    run.later(6 * HOUR)

    assert run.is_waiting_for("first")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scope": "SERVER"}, "The scope of a budget must be one of"),
        ({"period": "YEAR"}, "The period of a budget must be one of"),
        ({"period": "RUN"}, "period RUN"),
        ({"scope": "RUN"}, "period RUN"),
        ({"scope": "ALL"}, "has no name"),
        ({"name": " "}, "needs a name"),
        ({"scope": "MODEL", "name": "small"}, "integration:model"),
        ({"name": "x" * 321}, "at most 320 characters"),
        ({"max_tokens": None}, "a limit of cost or of tokens"),
        ({"max_tokens": -1}, "`maxTokens` must be from 0"),
        ({"max_cost": 10**16}, "`maxCost` must be from 0"),
    ],
)
def test_an_invalid_budget_is_refused(fields, message):
    given = {"scope": "DEFINITION", "name": "w", "period": "DAY", "max_tokens": 1} | fields

    with pytest.raises(Invalid, match=message):
        save_budget(BudgetLimits(**given), "olga")


def test_a_check_without_budgets_is_one_query(clock, worker, django_assert_num_queries):
    call = BudgetedCall(RunLine((("r", "w"),), "r", "olga"), "w", "olga", "openai", "small")

    with django_assert_num_queries(1):
        assert find_full_budget(call, Estimate(1, 1), clock.now()) is None
