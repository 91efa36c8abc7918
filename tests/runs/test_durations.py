"""The duration of a run: without the time between its end and a retry or rerun, in every place that shows it."""

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from conductor_app.definitions.durations import measure_version
from conductor_app.definitions.models import DurationBaseline
from conductor_app.runs.models import Run
from tests.builders import policy, step
from tests.scenario import Scenario

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

    assert "Duration32.0 s Executions2, the last one 2.0 s Time between the executions1 h" in page
    assert "From the first start to the end1 h" in page
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
