"""History strips and the grid of steps and runs read a bounded part of the runs."""

import pytest

from conductor_app.definitions.models import WorkflowDefinition
from conductor_app.runs.commands import repair
from conductor_app.runs.models import Run
from conductor_app.runs.pages.view_model import history_strip
from conductor_app.runs.queries import recent as step_history
from conductor_app.runs.queries.recent import (
    STRIP_LENGTH,
    recent_runs_of_schedules,
    recent_runs_of_workflows,
    runs_by_result,
    step_grid,
)
from conductor_app.utils.formatting import TimeRange
from tests.builders import simple, step_of
from tests.scenario import claim_and_report, define_task, define_workflow, start_run, start_run_of

pytestmark = pytest.mark.django_db


def test_a_strip_has_the_newest_runs_oldest_first(clock, django_assert_num_queries):
    define_workflow("order", simple("ship"))
    for _ in range(STRIP_LENGTH + 2):
        clock.advance(seconds=1)
        last = start_run("order")
    other = start_run_of(simple("ship"), name="return")

    with django_assert_num_queries(1):
        found = recent_runs_of_workflows(["order", "return", "unknown", "order"])

    assert set(found) == {"order", "return"} and found["return"][0].id == other.pk
    assert len(found["order"]) == STRIP_LENGTH and found["order"][-1].id == last.pk
    starts = [run.created_at for run in found["order"]]
    assert starts == sorted(starts)


def test_runs_of_schedules_are_found_by_the_schedule(clock):
    run = start_run_of(simple("ship"))
    Run.objects.filter(pk=run.pk).update(schedule="nightly")
    start_run("order")

    assert [each.id for each in recent_runs_of_schedules(["nightly", "hourly"])["nightly"]] == [run.pk]


def test_a_strip_without_names_takes_no_query(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert recent_runs_of_workflows([]) == {}


def document(name: str = "order"):
    return WorkflowDefinition.objects.get(name=name).document


def test_a_cell_has_the_state_of_the_step_in_the_run(clock):
    define_task("ship", retryCount=0)
    define_workflow("order", simple("pack"), simple("ship"))
    start_run("order")
    claim_and_report("pack")
    claim_and_report("ship", "FAILED")
    clock.advance(seconds=1)
    start_run("order")

    pack, ship = step_grid(document(), recent_runs_of_workflows(["order"])["order"]).rows

    assert [cell.status for cell in pack.cells] == ["COMPLETED", "ACTIVE"]
    assert [(cell.status, cell.task) for cell in ship.cells] == [("FAILED", "ship"), ("", "")]


def test_runs_and_steps_that_failed_and_were_retried_are_marked(clock):
    define_task("ship", retryCount=1, retryDelaySeconds=0)
    define_workflow("order", simple("pack"), simple("ship"))
    start_run("order")
    claim_and_report("pack")
    claim_and_report("ship", "FAILED")
    claim_and_report("ship")
    define_task("ship", retryCount=0)
    clock.advance(seconds=1)
    failed = start_run("order")
    claim_and_report("pack")
    claim_and_report("ship", "FAILED")
    repair.retry(failed.pk, "ann")
    claim_and_report("ship")

    runs = recent_runs_of_workflows(["order"])["order"]
    pack, ship = step_grid(document(), runs).rows

    assert [run.is_repaired for run in runs] == [False, True], "Only the second run failed."
    assert not any(cell.is_repaired for cell in pack.cells) and all(cell.is_repaired for cell in ship.cells)
    assert "Completed (Failed, then retried)" in history_strip(runs, 0) and 'class="repaired"' in history_strip(runs, 0)


def loop(ref: str, *body, iterations: int):
    return step_of("DO_WHILE", ref, loopCondition=f"$.{ref}['iteration'] < {iterations}", loopOver=list(body))


def test_a_cell_of_a_loop_has_its_worst_iteration(clock):
    define_task("ship", retryCount=0)
    define_workflow("order", loop("parcels", simple("ship"), iterations=3))
    start_run("order")
    claim_and_report("ship")
    claim_and_report("ship", "FAILED")

    __, ship = step_grid(document(), recent_runs_of_workflows(["order"])["order"]).rows

    [cell] = ship.cells
    assert (cell.status, cell.task, cell.count) == ("FAILED", "ship__2", 2)


def test_of_runs_with_many_tasks_only_those_outside_of_loops_are_read(clock, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(step_history, "MAX_TASKS", 3)
    start_run_of(loop("parcels", simple("ship"), iterations=3))
    claim_and_report("ship")
    claim_and_report("ship")
    runs = recent_runs_of_workflows(["order"])["order"]
    order = document()

    with django_assert_num_queries(1):
        parcels, ship = step_grid(order, runs).rows

    assert parcels.cells[0].status == "ACTIVE" and ship.cells[0].status == ""


def test_a_long_definition_has_a_bounded_number_of_rows(clock, monkeypatch):
    monkeypatch.setattr(step_history, "MAX_STEPS", 2)
    start_run_of(simple("a"), simple("b"), simple("c"))

    grid = step_grid(document(), recent_runs_of_workflows(["order"])["order"])

    assert [row.ref for row in grid.rows] == ["a", "b"] and grid.steps == 3 and grid.is_cut


def test_runs_are_counted_by_start_and_result(clock):
    define_task("ship", retryCount=0)
    define_workflow("order", simple("ship"))
    for outcome in ("COMPLETED", "FAILED"):
        start_run("order")
        claim_and_report("ship", outcome)
    clock.advance(seconds=2 * 3600)
    start_run("order")
    start_run_of(simple("ship"), name="return")

    counts, is_cut = runs_by_result(Run.objects.of_definition("order"), TimeRange.aligned("24h", clock.now()))

    assert (counts["completed"][-3], counts["failed"][-3], counts["open"][-1]) == (1, 1, 1)
    assert sum(map(sum, counts.values())) == 3 and not is_cut


def test_a_retried_failure_stays_counted_at_its_time(clock):
    define_task("ship", retryCount=0)
    define_workflow("order", simple("ship"))
    run = start_run("order")
    claim_and_report("ship", "FAILED")
    clock.advance(seconds=2 * 3600)
    repair.retry(run.pk, "ann")
    claim_and_report("ship")
    day, orders = TimeRange.aligned("24h", clock.now()), Run.objects.of_definition("order")

    by_end, by_start = runs_by_result(orders, day, "ended_at")[0], runs_by_result(orders, day)[0]

    assert (by_end["reopened"][-3], by_end["completed"][-1], sum(map(sum, by_end.values()))) == (1, 1, 2)
    assert (by_start["reopened"][-3], sum(map(sum, by_start.values()))) == (1, 1)


def test_a_run_that_failed_again_is_counted_once_by_its_start(clock):
    define_task("ship", retryCount=0)
    define_workflow("order", simple("ship"))
    run = start_run("order")
    claim_and_report("ship", "FAILED")
    repair.retry(run.pk, "ann")
    claim_and_report("ship", "FAILED")
    day, orders = TimeRange.aligned("24h", clock.now()), Run.objects.of_definition("order")

    by_end, by_start = runs_by_result(orders, day, "ended_at")[0], runs_by_result(orders, day)[0]

    assert (by_end["reopened"][-1], by_end["failed"][-1]) == (1, 1)
    assert (by_start["reopened"][-1], by_start["failed"][-1]) == (0, 1)


def test_a_bar_has_the_durations_of_the_completed_among_its_newest_runs(clock, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(step_history, "SAMPLED_RUNS", 4)
    define_task("ship", retryCount=0)
    define_workflow("order", simple("ship"))
    for seconds in (500, 1, 2, 3):
        start_run("order")
        clock.advance(seconds=seconds)
        claim_and_report("ship")
    start_run("order")
    claim_and_report("ship", "FAILED")
    day = TimeRange.aligned("24h", clock.now())

    with django_assert_num_queries(1):
        medians, high, is_cut = step_history.durations_by_bar(Run.objects.of_definition("order"), day)

    assert (medians[-1], high[-1], is_cut) == (2000, 3000, True) and sum(medians) == 2000
