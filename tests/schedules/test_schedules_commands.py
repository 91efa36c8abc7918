"""The cost of a schedule slot, exactly-once handling under concurrency, and many slots at once."""

from threading import Barrier, Thread

import pytest
from django.db import InternalError, OperationalError, connections

from conductor_app.core.errors import Busy, StorageUnavailable
from conductor_app.processes import sweeps
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Run
from conductor_app.runs.store import due_rows
from conductor_app.schedules import commands as schedules_commands
from conductor_app.schedules import firing
from conductor_app.schedules import firing as schedules_firing
from conductor_app.schedules.models import Schedule, ScheduleExecution
from tests.runs.test_statements import Counted
from tests.scenario import run_commit_hooks
from tests.schedule_helpers import HOURLY, create_schedule, register_order_workflow, slot_outcomes

pytestmark = pytest.mark.django_db

HOUR_MS = 3_600_000


@pytest.fixture
def hour(clock):
    """Return an hourly schedule whose first slot is due."""
    register_order_workflow()
    create_schedule()
    clock.advance(seconds=3600)
    return clock


@pytest.mark.parametrize(("policy", "most"), [("ALLOW", 9), ("SKIP", 11), ("TERMINATE_OTHER", 10)])
def test_a_slot_is_executed_in_few_statements(clock, policy, most):
    register_order_workflow()
    schedule = create_schedule(overlapPolicy=policy)
    # The first run of a definition reads it.
    with run_commit_hooks():
        start_run(StartRequest("order"), "ann")
    clock.advance(seconds=3600)

    with Counted() as counted:
        schedules_firing.fire_schedule(schedule.pk)

    assert Run.objects.filter(schedule="hourly").count() == 1
    assert counted.count <= most, counted.statements


def test_a_pass_without_due_rows_takes_one_statement(clock):
    create_schedule()

    with Counted() as counted:
        assert sweeps.fire_schedules(500) == sweeps.start_waiting_slots(500) == 0

    assert counted.count == 2


def test_a_slot_handled_by_another_process_is_not_repeated(hour, monkeypatch):
    began = start_run

    def slowly(request, by, within_transaction):
        monkeypatch.setattr(schedules_firing, "start_run", began)
        schedules_firing.fire_schedule(Schedule.objects.get().pk)
        return began(request, by, within_transaction)

    monkeypatch.setattr(schedules_firing, "start_run", slowly)
    schedules_firing.fire_schedule(Schedule.objects.get().pk)

    assert Run.objects.count() == ScheduleExecution.objects.count() == 1
    assert Schedule.objects.get().next_run_at == hour.now() + HOUR_MS


def test_a_concurrently_changed_schedule_does_not_start_its_old_slot(hour, monkeypatch):
    began = start_run

    def after_a_change(request, by, within_transaction):
        create_schedule(cron="0 30 * * * *")
        return began(request, by, within_transaction)

    monkeypatch.setattr(schedules_firing, "start_run", after_a_change)
    schedules_firing.fire_schedule(Schedule.objects.get().pk)

    assert Run.objects.count() == 0


def test_a_crash_before_the_commit_neither_loses_nor_repeats_a_slot(hour, monkeypatch):
    def crash(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(firing, "_save_execution", crash)
        with pytest.raises(KeyboardInterrupt):
            schedules_firing.fire_schedule(Schedule.objects.get().pk)
    assert Run.objects.count() == 0
    assert Schedule.objects.get().next_run_at == hour.now()

    sweeps.fire_schedules(500)
    sweeps.fire_schedules(500)

    assert Run.objects.count() == 1
    assert slot_outcomes() == [("EXECUTED", "")]


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("could not extend file: No space left on device"),
        InternalError("cannot execute INSERT in a read-only transaction"),
    ],
)
def test_a_slot_whose_start_met_a_fault_of_the_database_stays_due(hour, monkeypatch, settings, error):
    def fail(*_, **__):
        raise error

    settings.CONDUCTOR_RAISES_IN_SWEEPS = False
    with monkeypatch.context() as patched:
        patched.setattr(schedules_firing, "start_run", fail)
        sweeps.fire_schedules(500)
    assert ScheduleExecution.objects.count() == 0

    sweeps.fire_schedules(500)

    assert slot_outcomes() == [("EXECUTED", "")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Busy("All helpers are at work."), "All helpers are at work."),
        (StorageUnavailable("TimeoutError"), "The storage of payloads did not respond."),
        (MemoryError(), "The server is out of memory."),
    ],
)
def test_a_start_that_meets_a_fault_is_retried_with_growing_delays(hour, monkeypatch, error, reason):
    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(schedules_firing, "start_run", fail)
        assert sweeps.fire_schedules(500) == 1
        began, tries = hour.now(), []
        for _ in range(200):
            hour.advance(seconds=1)
            if sweeps.start_waiting_slots(500):
                tries.append((hour.now() - began) // 1000)
    assert slot_outcomes() == [("POLLED", reason)]
    assert tries == [1, 2, 4, 8, 16, 32, 64, 124, 184]

    hour.advance(seconds=60)
    sweeps.start_waiting_slots(500)
    assert slot_outcomes() == [("EXECUTED", "")]


def test_a_retried_start_succeeds(hour, monkeypatch):
    def busy(*_, **__):
        raise Busy

    with monkeypatch.context() as patched:
        patched.setattr(schedules_firing, "start_run", busy)
        sweeps.fire_schedules(500)
    hour.advance(seconds=2)
    sweeps.start_waiting_slots(500)

    assert slot_outcomes() == [("EXECUTED", "")]


def test_an_internal_error_is_recorded_and_the_schedule_continues(hour, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(schedules_firing, "start_run", broken)
    sweeps.fire_schedules(500)

    execution = ScheduleExecution.objects.get()
    assert (execution.state, execution.reason) == ("FAILED", "ZeroDivisionError: by nothing")
    assert "broken" in execution.trace
    assert Schedule.objects.get().next_run_at == hour.now() + HOUR_MS


def test_the_next_due_time_is_that_of_the_earliest_schedule(clock):
    register_order_workflow()
    assert due_rows.next_due_moment() is None
    create_schedule("b", "0 30 * * * *")
    create_schedule("a")
    assert due_rows.next_due_moment() == clock.now() + HOUR_MS // 2

    schedules_firing.pause_schedule("b", "ann")
    assert due_rows.next_due_moment() == clock.now() + HOUR_MS
    schedules_firing.pause_all("ann")

    assert due_rows.next_due_moment() is None


@pytest.mark.slow
def test_ten_thousand_due_schedules_are_handled_in_bounded_passes(clock):
    register_order_workflow()
    template = create_schedule()
    Schedule.objects.all().delete()
    fields = {
        "document": template.document,
        "workflow_name": "order",
        "next_run_at": clock.now(),
        "next_slot_at": clock.now(),
    }
    Schedule.objects.bulk_create([Schedule(name=f"s{number}", **fields) for number in range(10_000)], batch_size=500)

    with run_commit_hooks():
        passes = [sweeps.fire_schedules(50) for _ in range(2)]

    assert passes == [50, 50]
    assert Run.objects.count() == 100
    assert Schedule.objects.filter(next_run_at__lte=clock.now()).count() == 9_900


@pytest.mark.django_db(transaction=True)
def test_sweeps_that_meet_at_a_slot_start_one_run(hour):
    names = ["hourly", "two", "three"]
    for name in names[1:]:
        create_schedule(name)
    Schedule.objects.update(next_run_at=hour.now(), next_slot_at=hour.now())
    barrier = Barrier(4)

    def sweep() -> None:
        barrier.wait(10)
        try:
            sweeps.fire_schedules(500)
        finally:
            connections.close_all()

    threads = [Thread(target=sweep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(Run.objects.values_list("schedule", flat=True)) == sorted(names)
    assert ScheduleExecution.objects.filter(state="EXECUTED").count() == 3


@pytest.mark.django_db(transaction=True)
def test_slots_of_a_schedule_without_overlap_start_one_after_another(clock):
    register_order_workflow()
    create_schedule(cron=HOURLY, overlapPolicy="QUEUE")
    clock.advance(seconds=5 * 3600)
    Schedule.objects.update(next_run_at=clock.now() + HOUR_MS, next_slot_at=clock.now() + HOUR_MS)
    assert schedules_commands.backfill("hourly", clock.now() - 4 * HOUR_MS, clock.now(), "ann") == 5
    waiting = list(ScheduleExecution.objects.values_list("id", flat=True))
    barrier = Barrier(5)

    def begin(id: str) -> None:
        barrier.wait(10)
        try:
            schedules_firing.start_waiting_execution(id)
        finally:
            connections.close_all()

    threads = [Thread(target=begin, args=(id,)) for id in waiting]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert Run.objects.count() == 1
    assert [state for state, _ in slot_outcomes()].count("POLLED") == 4
