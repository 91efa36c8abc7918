"""Late marks of schedules, and runs that are spread."""

import itertools

import pytest

from conductor_app.processes import sweeps
from conductor_app.runs.models import Run
from conductor_app.schedules import firing as schedules
from conductor_app.schedules.models import Schedule, ScheduleExecution, Scheduler
from tests.page_text import page_text
from tests.scenario import run_commit_hooks
from tests.schedule_helpers import create_schedule, register_order_workflow

pytestmark = pytest.mark.django_db
HOUR = 3600


@pytest.fixture(autouse=True)
def order(clock):
    # Monday, 1 March 2027, noon.
    register_order_workflow()


def pages(row: Schedule) -> str:
    return f"/admin/conductor/schedule/{row.pk}/change/"


def test_a_schedule_that_is_not_run_in_time_is_late(viewer, clock):
    row = create_schedule()
    clock.advance(seconds=HOUR + 120)

    assert "late" in page_text(viewer.get("/admin/conductor/schedule/"))
    assert "Late: its slot was due 2 min ago" in page_text(viewer.get(pages(row)))
    Scheduler.objects.create(is_paused=True)
    assert "It is late" not in page_text(viewer.get(pages(row)))


def test_runs_of_one_slot_are_spread(clock):
    for number in range(4):
        create_schedule(f"s{number}", jitterSeconds=600)
    moments = set(Schedule.objects.values_list("next_run_at", flat=True))
    slot = clock.now() + HOUR * 1000

    assert len(moments) > 1 and all(slot <= at <= slot + 600_000 for at in moments)
    assert set(Schedule.objects.values_list("next_slot_at", flat=True)) == {slot}

    clock.advance(seconds=HOUR)
    with run_commit_hooks():
        sweeps.fire_schedules(10)
    assert Run.objects.count() < 4
    clock.advance(seconds=600)
    with run_commit_hooks():
        sweeps.fire_schedules(10)

    assert Run.objects.count() == 4
    assert {run.input["_scheduledTime"] for run in Run.objects.all()} == {slot}
    assert set(Schedule.objects.values_list("next_slot_at", flat=True)) == {slot + HOUR * 1000}


def test_a_resumed_schedule_returns_to_its_slot_and_not_to_its_jitter(clock):
    row = create_schedule(jitterSeconds=600)
    schedules.pause_schedule(row.name, "ann", "")
    clock.advance(seconds=3 * HOUR)

    schedules.resume_schedule(row.name, "ann")

    row.refresh_from_db()
    slot = clock.now() + HOUR * 1000
    assert row.next_slot_at == slot and slot <= row.next_run_at <= slot + 600_000


def test_a_jitter_longer_than_the_interval_skips_no_slot(clock):
    row = create_schedule(cron="0 * * * * *", jitterSeconds=150)

    for _ in range(40):
        clock.advance(seconds=15)
        with run_commit_hooks():
            sweeps.fire_schedules(10)

    slots = sorted(ScheduleExecution.objects.values_list("slot_at", flat=True))
    assert len(slots) >= 6
    assert {after - before for before, after in itertools.pairwise(slots)} == {60_000}
    assert row.name == "hourly"


def test_the_form_offers_jitter_and_the_page_displays_it(operator, clock):
    form = {
        "name": "n",
        "expression": "0 0 13 * * *",
        "zone": "UTC",
        "workflow": "order",
        "overlap": "ALLOW",
        "input": "{}",
    }
    operator.post("/admin/conductor/schedule/add/", form | {"jitter": "300"})

    row = Schedule.objects.get()
    assert row.document["jitterSeconds"] == 300
    assert "Each run starts up to 5 min after its slot, by a random delay" in page_text(operator.get(pages(row)))
    page = operator.post("/admin/conductor/schedule/add/", form | {"name": "m", "jitter": "86401"})
    assert "less than or equal to 86400" in page_text(page)


def test_a_backfill_lists_slots_that_have_already_run(operator, clock):
    row = create_schedule()
    clock.advance(seconds=HOUR)
    with run_commit_hooks():
        sweeps.fire_schedules(10)
    clock.advance(seconds=HOUR)
    schedules.pause_schedule(row.name, "ann", "")
    schedules.resume_schedule(row.name, "ann")

    form = {"first": "2027-03-01T12:30Z", "last": "2027-03-01T14:00Z"}
    shown = page_text(operator.post(f"/admin/conductor/schedule/{row.pk}/backfill/", form))

    assert "2 slots in this period" in shown and "executed" in shown
    assert "1 run would start." in shown
