"""The duration of a run: without the time between its end and a retry or rerun, in every place that shows it."""

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from conductor_app.definitions.durations import measure_version
from conductor_app.definitions.models import DurationBaseline
from conductor_app.monitoring.queries.system import overdue_runs
from conductor_app.runs.commands import debugging
from conductor_app.runs.commands.debugging import BreakpointRequest, ContinueRequest
from conductor_app.runs.models import Attempt, Run
from tests.builders import human, loop, policy, step
from tests.scenario import ACTOR, Scenario, claim_and_report

pytestmark = pytest.mark.django_db


@pytest.fixture
def repaired(clock) -> Scenario:
    """Return a run that failed after 30 s, was retried an hour later and completed 2 s after that."""
    scenario = Scenario(clock, step("pay"))
    clock.advance(seconds=30)
    scenario.worker("pay").fails()
    clock.advance(seconds=3600)
    scenario.retry()
    clock.advance(seconds=2)
    scenario.worker("pay").completes()
    return scenario


def read(client, address, **query) -> str:
    return " ".join(strip_tags(client.get(address, query).content.decode()).split())


def test_the_time_before_a_retry_is_not_part_of_the_duration(repaired, clock):
    clock.advance(seconds=10)

    assert repaired.row.duration_ms(clock.now()) == 32_000


def test_an_open_run_that_was_retried_counts_from_its_start_without_the_idle_time(clock):
    scenario = Scenario(clock, step("pay"))
    scenario.worker("pay").fails()
    clock.advance(seconds=3600)
    scenario.retry()
    clock.advance(seconds=5)

    assert scenario.row.duration_ms(clock.now()) == 5_000


def test_two_retries_add_up(repaired, clock):
    clock.advance(seconds=600)
    repaired.rerun()
    clock.advance(seconds=1)
    repaired.worker("pay").completes()

    assert repaired.row.duration_ms(clock.now()) == 33_000
    assert repaired.row.idle_ms == 4_200_000


def test_a_restart_begins_a_new_duration(repaired, clock):
    clock.advance(seconds=600)
    repaired.restart()
    clock.advance(seconds=4)

    assert repaired.row.duration_ms(clock.now()) == 4_000


def test_page_list_export_and_cause_show_the_same_duration(operator, repaired):
    page = read(operator, reverse("admin:conductor_run_change", args=[repaired.id]))
    listed = read(operator, reverse("admin:conductor_run_changelist"))
    cause = operator.get(f"/api/insight/runs/{repaired.id}/cause").json()["sentence"]

    assert "Duration32.0 s Executions2 in 1 h, the last one 2.0 s" in page
    assert cause == "Completed in 32.0 s"
    assert "32.0 s" in listed
    assert "1 h 32 s" not in page + listed


def test_filters_by_duration_use_it(operator, repaired):
    address = reverse("admin:conductor_run_changelist")

    assert repaired.id in operator.get(address, {"most": "1 min"}).content.decode()
    assert repaired.id not in operator.get(address, {"least": "1 min"}).content.decode()


def test_typical_durations_use_it(repaired, clock):
    run = Run.objects.get()
    measure_version(run.name, run.version, clock.now())

    row = DurationBaseline.objects.get(name=run.name, ref="")
    assert (row.count, row.p50_ms) == (1, 32_000)


def test_timeline_tasks_and_panel_show_the_same_times_of_a_task(operator, clock):
    scenario = Scenario(clock, step("pay", policy=policy(retries=1)))
    for outcome in ("FAILED", "COMPLETED"):
        clock.advance(seconds=20)
        scenario.worker("pay").polls()
        clock.advance(seconds=3)
        scenario.reports("pay", outcome)
    clock.advance(seconds=60)
    address = reverse("admin:conductor_run_change", args=[scenario.id])

    assert "pay: queued 40.0 s, working 6.0 s" in operator.get(address).content.decode()
    assert "40.0 s 6.0 s" in read(operator, address, tab="tasks")
    assert "attempt 2, queued 20.0 s, working 3.0 s" in read(operator, address, task="pay")


def wait_for_a_person(scenario: Scenario, clock, seconds: int) -> None:
    clock.advance(seconds=seconds)
    scenario.reports("ask")


def wait_at_a_breakpoint(scenario: Scenario, clock, seconds: int) -> None:
    scenario.reports("ask")
    clock.advance(seconds=seconds)
    stopped = Attempt.objects.get(run_id=scenario.id, task__ref="pay").pk
    debugging.continue_run(scenario.id, ContinueRequest(stopped), ACTOR)


def wait_in_a_pause(scenario: Scenario, clock, seconds: int) -> None:
    scenario.pause()
    clock.advance(seconds=seconds)
    scenario.resume()
    scenario.reports("ask")


@pytest.mark.parametrize("wait", [wait_for_a_person, wait_at_a_breakpoint, wait_in_a_pause])
def test_only_working_time_makes_a_run_slow(operator, clock, wait):
    facts = {"name": "order", "version": 1, "count": 9, "p50_ms": 2_000, "p95_ms": 3_000, "measured_at": 0}
    for ref in ("", "ask", "pay"):
        DurationBaseline.objects.create(ref=ref, **facts)
    scenario = Scenario(clock, human("ask"), step("pay"))
    if wait is wait_at_a_breakpoint:
        debugging.set_breakpoint(scenario.id, BreakpointRequest("pay"), ACTOR)
    address, runs = reverse("admin:conductor_run_change", args=[scenario.id]), reverse("admin:conductor_run_changelist")

    wait(scenario, clock, 5_000)
    assert "slower than typical" not in read(operator, address) and "▲" not in read(operator, address)
    assert " ×" not in read(operator, runs) and overdue_runs(clock.now()) == []
    clock.advance(seconds=100)
    scenario.worker("pay").polls()
    clock.advance(seconds=60)
    assert "slower than typical" in read(operator, address) and "▲" in read(operator, address)
    assert "80 ×" in read(operator, runs)
    assert [run.pk for run, _typical in overdue_runs(clock.now())] == [scenario.id]


def test_runs_that_wait_for_people_do_not_hide_an_overdue_one(clock):
    DurationBaseline.objects.create(name="order", version=1, count=9, p50_ms=2_000, p95_ms=3_000, measured_at=0)
    first = Scenario(clock, human("ask"), step("pay"))
    for _number in range(10):
        first.starts("order")
    clock.advance(seconds=1)
    slow = first.starts("order")
    slow.reports("ask")
    clock.advance(seconds=600)

    assert [run.pk for run, _typical in overdue_runs(clock.now())] == [slow.id]


def test_iterations_of_one_run_are_no_typical_duration_of_their_step(clock):
    first = Scenario(clock, loop("pages", step("scan"), times=4))
    for start in (first.starts, first.starts, None):
        for _iteration in range(4):
            claim_and_report("scan")
        measure_version("order", 1, clock.now())
        assert DurationBaseline.objects.filter(ref="scan").exists() == (start is None)
        if start:
            start("order")
