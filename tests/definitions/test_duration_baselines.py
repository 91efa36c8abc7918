"""Duration baselines, measured when tasks complete."""

import pytest

from conductor_app.core.decide import Report
from conductor_app.definitions.durations import typical_run_durations, typical_step_durations, update_duration_baselines
from conductor_app.definitions.models import DurationBaseline
from conductor_app.tasks.commands import reports as task_commands
from tests.builders import simple
from tests.scenario import claim_and_report, claim_next, define_task, define_workflow, start_run


@pytest.fixture
def orders(clock, db):
    define_task("charge", retryCount=0)
    define_workflow("order", simple("charge"))


def one_order(clock, seconds):
    run = start_run("order")
    clock.advance(seconds=1)
    attempt = claim_next("charge")
    clock.advance(seconds=seconds)
    task_commands.report_task(run.pk, attempt.id, Report("COMPLETED"), "w7")
    return run


def test_median_and_95th_percentile_are_stored_for_runs_and_steps(clock, orders):
    runs = [one_order(clock, seconds) for seconds in (1, 2, 3, 4, 50)]

    assert update_duration_baselines(10) == 1

    steps = typical_step_durations("order", 1)
    assert (steps["charge"].p50, steps["charge"].p95, steps["charge"].count) == (3_000, 50_000, 5)
    assert steps[""].p50 == 4_000
    assert typical_run_durations(runs)["order", 1].p95 == 51_000


def test_unchanged_definitions_are_not_measured_again(clock, orders):
    one_order(clock, 1)

    assert update_duration_baselines(10) == 1
    assert update_duration_baselines(10) == 0
    one_order(clock, 1)
    assert update_duration_baselines(10) == 1


def test_failed_runs_do_not_affect_the_baseline(clock, orders):
    start_run("order")
    claim_and_report("charge", "FAILED", reason="no funds")

    assert update_duration_baselines(10) == 0
    assert not DurationBaseline.objects.exists()


def test_a_single_run_is_no_baseline(clock, orders):
    run = one_order(clock, 1)
    update_duration_baselines(10)

    assert typical_run_durations([run]) == {}
    assert typical_run_durations([]) == {}


def test_a_duration_is_slow_well_above_the_95th_percentile(clock, orders):
    for _ in range(5):
        one_order(clock, 2)
    update_duration_baselines(10)
    usual = typical_step_durations("order", 1)["charge"]

    assert usual.is_slow(10_000)
    assert not usual.is_slow(2_500)
