"""Open calls reserve what they may cost, so that parallel calls cannot exceed a budget together."""

import pytest
from django.db import connection

from conductor_app.ai.commands import budgets
from conductor_app.ai.commands.budgets import BudgetLimits, CallHeld, begin_call, save_budget
from conductor_app.ai.commands.calls import Estimate, call_key
from conductor_app.ai.models import BudgetHold, IntegrationModel, ModelBudget, ModelCall
from conductor_app.ai.queries.budgets import budget_states
from conductor_app.explanations.cause import current_steps
from conductor_app.runs.models import Attempt
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.tasks.queries.waiting import closed_gates
from tests.ai.paying_worker import PayingWorker, settings_of
from tests.builders import fork, step
from tests.runs.test_parallel import at_once
from tests.scenario import Scenario, explain_attempt

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def limit(scope="DEFINITION", name="w", period="DAY", **limits):
    return save_budget(BudgetLimits(scope, name, period, **limits), "olga")


def parallel_calls(clock, count=3, **fields):
    return Scenario(clock, *fork(*([step(f"call_{number}", "ask")] for number in range(count))), name="w", **fields)


def workers(count=3, **fields):
    return [PayingWorker(**fields) for _ in range(count)]


def test_parallel_calls_begin_only_while_their_estimates_fit(clock):
    parallel_calls(clock)
    limit(max_tokens=2_500)

    assert [worker.is_held() for worker in workers()] == [False, False, True]


def test_a_call_continues_when_an_open_one_ends_and_used_less(clock):
    run = parallel_calls(clock)
    limit(max_tokens=2_500)
    first, second, third = workers()
    assert [each.is_held() for each in (first, second, third)] == [False, False, True]
    assert third.polls() == []

    first.pays(prompt=100, completion=100)
    run.later(0)

    assert not third.is_held()
    assert not BudgetHold.objects.exists()


def test_a_call_that_used_all_it_reserved_leaves_no_room(clock):
    run = parallel_calls(clock)
    limit(max_tokens=2_500)
    first, second, third = workers()
    assert [each.is_held() for each in (first, second, third)] == [False, False, True]

    first.pays()
    run.later(0)

    assert third.is_held()


def test_a_failed_call_frees_its_reservation(clock):
    run = parallel_calls(clock, 2)
    limit(max_tokens=1_500)
    first, second = workers(2)
    assert [first.is_held(), second.is_held()] == [False, True]

    first.pays(status="FAILED")
    run.later(0)

    assert not second.is_held()


def test_a_call_whose_estimate_exceeds_the_limit_begins_alone(clock):
    run = parallel_calls(clock, 2)
    limit(max_tokens=500)
    first, second = workers(2)

    assert [first.is_held(), second.is_held()] == [False, True]
    first.pays(prompt=100, completion=50)
    run.later(0)
    assert not second.is_held()


def test_reservations_of_cost_have_the_prices_of_the_model(clock):
    IntegrationModel.objects.create(integration="openai", name="small", input_price=1_000_000, output_price=2_000_000)
    parallel_calls(clock)
    limit(max_cost=2 * 1_400_000)

    assert [worker.is_held() for worker in workers()] == [False, False, True]
    assert set(ModelCall.objects.values_list("reserved_cost", flat=True)) == {1_400_000}


def test_a_free_model_does_not_wait_for_reservations_of_cost(clock):
    IntegrationModel.objects.create(integration="openai", name="small", input_price=1_000_000, output_price=2_000_000)
    parallel_calls(clock)
    limit(max_cost=1_500_000)
    paid, free = workers(1)[0], PayingWorker(model="free")

    assert [paid.is_held(), free.is_held()] == [False, False]


def test_a_call_whose_process_ended_frees_its_reservation_with_the_next_claim(clock):
    run = parallel_calls(clock, 2)
    limit(max_tokens=1_500)
    first, second = workers(2)
    assert [first.is_held(), second.is_held()] == [False, True]
    # The process ends. Another one claims the attempt when its lease has expired.
    Attempt.objects.filter(pk=first.claimed.id).update(status="PENDING", visible_at=clock.now(), lease_ends_at=None)

    again = PayingWorker()
    assert not again.is_held()
    assert sorted(ModelCall.objects.values_list("status", flat=True)) == ["LOST", "STARTED"]
    again.pays(prompt=100, completion=100)
    run.later(0)
    assert not second.is_held()


def test_a_reservation_ends_with_the_longest_duration_of_a_call(clock, settings):
    settings.CONDUCTOR_AI_TASK_SECONDS = 600
    run = parallel_calls(clock, 2)
    limit(max_tokens=1_500)
    first, second = workers(2)
    assert [first.is_held(), second.is_held()] == [False, True]

    # No worker claims the attempt of the first one again.
    run.terminate()
    other = parallel_calls(clock, 1)
    third = PayingWorker()
    assert third.is_held()
    other.later(599)
    assert third.polls() == []
    other.later(1)
    assert not third.is_held()


def test_the_page_says_that_the_task_waits_for_an_open_call(clock):
    parallel_calls(clock, 2)
    limit(max_tokens=1_500)
    first, second = workers(2)
    assert [first.is_held(), second.is_held()] == [False, True]
    held = BudgetHold.objects.get()

    gates = {each.gate: each.sentence for each in closed_gates(explain_attempt(held.pk))}
    assert gates["budget"] == (
        "The budget of workflow `w` has no room for this call beside the open ones: 0 tokens of 1,500 tokens are "
        "spent, and 1,000 tokens reserved, set by olga. The task continues when an open call ends. To continue "
        "earlier, raise the budget or allow this call once."
    )
    [state] = budget_states(clock.now())
    assert (state.reserved.tokens, state.spent.tokens, state.waiting) == (1_000, 0, 1)


def test_lists_say_that_a_run_waits_for_a_reservation(clock):
    parallel_calls(clock, 1)
    limit(max_tokens=1_500)
    assert not PayingWorker().is_held()
    waiting = Scenario(clock, step("only", "ask"), name="w")
    assert PayingWorker().is_held()

    assert current_steps([waiting.row], clock.now())[waiting.id].words == "budget reserved"


def test_an_operator_may_allow_a_call_that_waits_for_a_reservation(clock):
    run = parallel_calls(clock, 2)
    limit(max_tokens=1_500)
    first, second = workers(2)
    assert [first.is_held(), second.is_held()] == [False, True]

    budgets.allow_once(BudgetHold.objects.get().pk, "olga")
    run.later(0)

    assert not second.is_held()


def test_a_call_that_ends_while_another_is_put_back_releases_it(clock, monkeypatch):
    run = parallel_calls(clock, 2)
    limit(max_tokens=1_500)
    first, second = workers(2)
    assert not first.is_held()
    hold = budgets._hold

    def end_and_hold(*found):
        first.pays(prompt=1, completion=1)
        hold(*found)

    with monkeypatch.context() as patch:
        patch.setattr(budgets, "_hold", end_and_hold)
        assert second.is_held()
    run.later(0)

    assert not second.is_held()


def test_the_end_of_a_call_releases_the_oldest_waiting_ones(clock, monkeypatch):
    monkeypatch.setattr("conductor_app.ai.commands.calls.RELEASED_AT_ONCE", 1)
    run = parallel_calls(clock)
    limit(max_tokens=1_500)
    first, second, third = workers()
    assert not first.is_held()
    assert second.is_held()
    oldest = BudgetHold.objects.get().pk
    clock.advance(seconds=1)
    assert third.is_held()

    first.pays(prompt=1, completion=1)
    run.later(0)

    assert second.polls()
    assert second.claimed.id == oldest
    assert third.polls() == []


@pytest.mark.parametrize("limits", [{"max_tokens": 10_000}, {"max_tokens": 9_500}])
def test_calls_exceed_their_budget_by_one_call_at_most_if_none_uses_more_than_its_estimate(clock, limits):
    run = parallel_calls(clock, 30)
    limit(**limits)
    open_workers, most = [], 0
    for number in range(60):
        worker = PayingWorker()
        if worker.polls() and worker.begins():
            open_workers.append(worker)
        most = max(most, len(open_workers))
        if open_workers and number % 3 == 2:
            open_workers.pop(0).pays(prompt=200 * (number % 4), completion=400)
            run.later(0)
        spent = ModelBudget.objects.get().spent_tokens
        assert len(open_workers) <= 1 or spent + 1_000 * len(open_workers) <= limits["max_tokens"]
    assert most > 1


@pytest.mark.django_db(transaction=True)
def test_processes_that_begin_calls_at_the_same_time_do_not_exceed_the_budget(clock):
    parallel_calls(clock, 12)
    limit(max_tokens=5_000)
    claimed = claim_tasks("ask", worker="worker", count=12, wait_ms=0)
    assert len(claimed) == 12

    def begin(number):
        connection.ensure_connection()
        attempt = claimed[number]
        try:
            begin_call(attempt, settings_of(), call_key(attempt, "question"), Estimate(tokens=1_000))
        except CallHeld:
            return False
        return True

    assert sum(at_once(begin, 12)) == 5
    assert ModelCall.objects.filter(status="STARTED").count() == 5
