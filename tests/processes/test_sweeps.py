"""Sweeps cost one statement while nothing is due, and run only where rows are due."""

import pytest
from django.db import OperationalError

from conductor_app.bulk import commands as bulk
from conductor_app.bulk.commands import BulkRequest
from conductor_app.db import leases
from conductor_app.db.leases import Lease
from conductor_app.processes import sweeps
from conductor_app.runs.store import due_rows
from conductor_app.runs.store.outbox import send
from conductor_app.tasks.models import SweepPass
from conductor_app.utils import clock as product_clock
from tests.builders import step, wait
from tests.scenario import ACTOR, Scenario

pytestmark = pytest.mark.django_db

QUEUES = ("HTTP", "EVENT")


def test_an_idle_sweep_executes_one_statement(clock, django_assert_num_queries):
    sweeps.sweep_until(product_clock.now() + 500)

    with django_assert_num_queries(1):
        sweeps.sweep_until(product_clock.now() + 500)


def test_a_sweep_without_due_rows_is_recorded_every_ten_seconds(clock):
    clock.advance(seconds=20)
    sweeps.sweep_until(product_clock.now())
    first = dict(SweepPass.objects.values_list("name", "began_at"))
    clock.advance(seconds=5)
    sweeps.sweep_until(product_clock.now())
    second = dict(SweepPass.objects.values_list("name", "began_at"))
    clock.advance(seconds=6)
    sweeps.sweep_until(product_clock.now())

    assert set(first) == set(sweeps.continuous_sweeps())
    assert second == first
    assert set(SweepPass.objects.values_list("began_at", flat=True)) == {product_clock.now()}


def test_only_sweeps_with_due_rows_run(clock, monkeypatch):
    scenario = Scenario(clock, wait("w", duration="5 seconds"))
    ran = []
    observed = {name: observe(ran, name, sweep) for name, sweep in sweeps.continuous_sweeps().items()}
    monkeypatch.setattr(sweeps, "continuous_sweeps", lambda: observed)

    sweeps.sweep_until(product_clock.now())
    assert ran == []
    clock.advance(seconds=5)
    sweeps.sweep_until(product_clock.now())

    assert ran == ["handle_due_timers"]
    assert scenario.status == "COMPLETED"


def observe(ran, name, sweep):
    def run(limit: int) -> int:
        ran.append(name)
        return sweep(limit)

    return run


def test_a_timer_is_handled_by_the_sweep_that_precedes_it(clock):
    scenario = Scenario(clock, wait("w", duration="5 seconds"))
    clock.advance(seconds=4.9)

    # The test's clock stands still, so the sweep meets its time only if it is due.
    assert sweeps.sweep_until(product_clock.now() + 50) == 0
    clock.advance(seconds=0.1)
    assert sweeps.sweep_until(product_clock.now() + 500) == 1
    assert scenario.status == "COMPLETED"


def test_no_job_is_due_on_an_idle_server(clock, django_assert_num_queries):
    with django_assert_num_queries(1):
        assert due_rows.due_jobs(product_clock.now(), QUEUES) == []


def test_built_in_work_is_due_when_an_attempt_is_visible(clock):
    task = step("call", startDelay=30, inputs={"uri": "http://127.0.0.1/"}) | {"type": "HTTP"}
    Scenario(clock, task)
    before = due_rows.due_jobs(product_clock.now(), QUEUES)

    clock.advance(seconds=30)

    assert (before, due_rows.due_jobs(product_clock.now(), QUEUES)) == ([], ["work"])


def test_attempts_for_other_workers_start_no_job(clock):
    Scenario(clock, step("pay"))

    assert due_rows.due_jobs(product_clock.now(), QUEUES) == []


def test_built_in_work_is_due_when_a_message_to_another_system_is(clock):
    send("publish", product_clock.now(), to="sink")

    assert due_rows.due_jobs(product_clock.now(), QUEUES) == ["work"]


def test_bulk_work_is_due_when_an_operation_is(clock):
    Scenario(clock, step("pay"))
    selection = {"definition": "order", "status": ["RUNNING"]}
    bulk.start(BulkRequest("terminate", selection, rate=1000.0), ACTOR)

    assert due_rows.due_jobs(product_clock.now(), QUEUES) == ["bulk"]


def test_heartbeats_of_several_processes_are_read_with_one_statement(db, django_assert_num_queries):
    Lease.objects.create(name="beat", revision=7)

    with django_assert_num_queries(1):
        assert leases.read_revisions(["beat", "sweeps"]) == [7, 0]


def raising(error: Exception):
    def raise_error(*_):
        raise error

    return raise_error


FULL = OperationalError("database or disk is full")
BUG = KeyError("n")


@pytest.mark.parametrize(
    ("of_the_item", "of_the_delay", "expected"),
    [
        (FULL, FULL, [("sweep_item_failed", False)]),
        (BUG, FULL, [("sweep_item_failed", True), ("sweep_item_not_put_off", False)]),
        (FULL, BUG, [("sweep_item_failed", False), ("sweep_item_not_put_off", True)]),
    ],
)
def test_an_outage_takes_one_line_of_the_log_for_each_item(
    of_the_item, of_the_delay, expected, clock, caplog, settings, monkeypatch
):
    settings.CONDUCTOR_RAISES_IN_SWEEPS = False

    due_rows.handle_each(["one"], raising(of_the_item), raising(of_the_delay))

    assert [(record.message, bool(record.exc_info)) for record in caplog.records] == expected
    assert caplog.records[0].cause == f"{type(of_the_item).__name__}: {of_the_item}"


def test_a_timer_is_not_late_after_the_clock_was_set_back_during_a_sweep(clock, monkeypatch):
    scenario = Scenario(clock, wait("pause", duration="2 seconds"))
    clock.advance(seconds=3)
    change_run = sweeps.change_run

    def change_after_a_step_of_the_clock(command):
        clock.advance(seconds=-2)
        return change_run(command)

    with monkeypatch.context() as stepped:
        stepped.setattr(sweeps, "change_run", change_after_a_step_of_the_clock)
        sweeps.handle_due_timers(10)
    assert scenario.status == "RUNNING"

    clock.advance(seconds=1)
    sweeps.handle_due_timers(10)

    assert scenario.status == "COMPLETED"
