"""A budget of runs counts the calls of a run and of the runs below it."""

import pytest

from conductor_app.ai.commands.budgets import BudgetLimits, allow_once, save_budget
from conductor_app.ai.models import BudgetHold, ModelCall, ModelUsage
from conductor_app.ai.queries.budgets import run_budget_share
from conductor_app.ai.queries.usage import usage_of_run
from conductor_app.ai.store import load_run_line, spent_below
from tests.ai.paying_worker import PayingWorker
from tests.builders import definition, fork, start_workflow, step, sub_workflow
from tests.scenario import Scenario, register_definitions

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker():
    return PayingWorker()


def limit_runs(name, tokens):
    return save_budget(BudgetLimits("RUN", name, "RUN", max_tokens=tokens), "olga")


def tree(clock):
    """Start a run `top` with a call, below it `middle` with one, below that `bottom` with two."""
    bottom = definition(step("third", "ask"), step("fourth", "ask"), name="bottom")
    middle = definition(step("second", "ask"), sub_workflow("down", "bottom"), name="middle")
    register_definitions(bottom, middle)
    return Scenario(clock, step("first", "ask"), sub_workflow("down", "middle"), name="top")


@pytest.mark.parametrize("name", ["", "top", "middle", "bottom"])
def test_calls_of_a_run_and_below_it_count_together(clock, worker, name):
    tree(clock)
    calls_within = {"": 4, "top": 4, "middle": 3, "bottom": 2}[name]
    limit_runs(name, 1_000 * calls_within - 1_000)
    for _ in range(3):
        worker.calls_and_reports()

    assert worker.is_held()
    assert BudgetHold.objects.get().facts["spent_tokens"] == 1_000 * calls_within - 1_000


def test_calls_above_a_run_do_not_count(clock, worker):
    run = tree(clock)
    limit_runs("bottom", 1_001)
    for _ in range(4):
        worker.calls_and_reports()

    assert run.status == "COMPLETED"


def test_open_calls_of_the_tree_are_reserved(clock):
    register_definitions(definition(step("inner", "ask"), name="child"))
    run = Scenario(clock, *fork([step("outer", "ask")], [sub_workflow("down", "child")]), name="top")
    limit_runs("top", 1_500)
    first, second = PayingWorker(), PayingWorker()
    assert [first.is_held(), second.is_held()] == [False, True]

    first.pays(prompt=100, completion=100)
    run.later(0)

    assert not second.is_held()


def test_another_run_of_the_workflow_does_not_wait_for_this_tree(clock):
    tree(clock)
    limit_runs("top", 1_500)
    first, second = PayingWorker(), PayingWorker()
    assert not first.is_held()
    tree(clock)

    assert not second.is_held()


def test_a_workflow_that_nobody_waits_for_has_a_budget_of_its_own(clock, worker):
    register_definitions(definition(step("inner", "ask"), name="child"))
    run = Scenario(clock, step("outer", "ask"), start_workflow("aside", name="child"), name="top")
    limit_runs("", 1_500)
    worker.calls_and_reports()
    run.later(0)

    worker.calls_and_reports()
    assert ModelCall.objects.values("root_id").distinct().count() == 2


def test_an_allowed_call_below_a_run_is_made(clock, worker):
    run = tree(clock)
    limit_runs("top", 1_000)
    worker.calls_and_reports()
    assert worker.is_held()

    allow_once(run.child("down").task("second").pk, "olga")
    run.later(0)

    assert not worker.is_held()


def test_the_page_of_a_run_counts_the_runs_below_it(clock, worker):
    run = tree(clock)
    limit_runs("top", 8_000)
    limit_runs("middle", 6_000)
    for _ in range(4):
        worker.calls_and_reports()
    middle = run.child("down")

    assert usage_of_run(run.id, run.id).calls == 4
    assert usage_of_run(middle.id, run.id).calls == 3
    assert run_budget_share(run.id, "top", run.id) == 0.5
    assert run_budget_share(middle.id, "middle", run.id) == 0.5
    assert run_budget_share(middle.child("down").id, "bottom", run.id) is None


def test_a_run_is_found_with_those_above_it(clock, worker):
    run = tree(clock)
    worker.calls_and_reports()
    worker.calls_and_reports()
    bottom = run.child("down").child("down")

    line = load_run_line(bottom.id)
    assert [name for _, name in line.runs] == ["bottom", "middle", "top"]
    assert (line.root_id, line.caller) == (run.id, "ann")
    assert spent_below(bottom.id, run.id).tokens == 0


def test_calls_below_a_run_count_for_the_caller_that_started_it(clock, worker):
    tree(clock)
    worker.calls_and_reports()
    worker.calls_and_reports()

    assert set(ModelUsage.objects.values_list("caller", flat=True)) == {"ann"}
