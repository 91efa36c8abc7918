"""The week of the schedules, late marks, and runs that are spread."""

import itertools
import re

import pytest

from conductor_app.definitions.models import DurationBaseline
from conductor_app.processes import sweeps
from conductor_app.runs.models import Run
from conductor_app.schedules import firing as schedules
from conductor_app.schedules.models import Schedule, ScheduleExecution, Scheduler
from tests.page_text import html, page_text
from tests.scenario import run_commit_hooks
from tests.schedule_helpers import create_schedule, register_order_workflow

pytestmark = pytest.mark.django_db
WEEK = "/admin/schedule-calendar/"
HOUR = 3600


@pytest.fixture(autouse=True)
def order(clock):
    # Monday, 1 March 2027, noon.
    register_order_workflow()


def pages(row: Schedule) -> str:
    return f"/admin/conductor/schedule/{row.pk}/change/"


def test_a_week_displays_past_and_future_slots(viewer, clock):
    row = create_schedule("nightly", "0 0 13 * * *")
    clock.advance(seconds=HOUR)
    with run_commit_hooks():
        sweeps.fire_schedules(10)

    shown = viewer.get(WEEK)

    assert "Mon 1 Mar 13:00 nightly started Tue 2 Mar 13:00 nightly Wed 3 Mar 13:00 nightly" in page_text(shown)
    assert pages(row) in html(shown)


def test_a_frequent_schedule_is_one_line_per_day(viewer, clock):
    create_schedule("often", "0 * * * * *")

    assert "Tue 2 Mar 00:00 often multiple Wed 3 Mar" in page_text(viewer.get(WEEK))


def test_a_paused_schedule_has_no_future_slots_and_other_weeks_are_linked(viewer, clock):
    create_schedule("held", "0 0 13 * * *", paused=True)
    create_schedule("later", "0 0 8 9 3 *")

    assert "held" not in page_text(viewer.get(WEEK))
    assert "Tue 9 Mar 08:00 later" in page_text(viewer.get(f"{WEEK}?from={viewer.get(WEEK).context['after']}"))
    assert "later" not in page_text(viewer.get(f"{WEEK}?from=2027-03-08&name=held"))


def test_a_day_with_a_clock_change_is_labeled(viewer, clock):
    viewer.post("/admin/preferences/", {"zone": "Europe/Berlin"})

    assert "Sun 28 Mar the clocks go forward" in page_text(viewer.get(f"{WEEK}?from=2027-03-22"))


@pytest.mark.parametrize("query", [{"from": "soon"}, {"from": "0001-01-01"}, {"from": "9999-12-31"}, {"name": "\0'%"}])
def test_hostile_weeks_are_pages(viewer, query):
    assert viewer.get(WEEK, query).status_code == 200


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


def test_the_week_takes_few_queries(viewer, clock, django_assert_max_num_queries):
    for number in range(5):
        create_schedule(f"s{number}")
    viewer.get(WEEK)
    with django_assert_max_num_queries(15):
        viewer.get(WEEK)


def bars(response) -> list[tuple[str, int, int]]:
    """Return the tone, the place and the width of each bar, in units of a two thousandth of the period."""
    found = re.findall(r'<rect class="(\w+)" x="(\d+)" y="4" width="(\d+)"', html(response))
    return [(tone, int(x), int(width)) for tone, x, width in found]


def test_a_bar_lasts_from_the_start_to_the_end_of_its_run(viewer, clock):
    create_schedule("nightly", "0 0 13 * * *")
    clock.advance(seconds=HOUR)
    with run_commit_hooks():
        sweeps.fire_schedules(10)
    run = Run.objects.get()
    slot = ScheduleExecution.objects.get().slot_at
    Run.objects.filter(pk=run.pk).update(ended_at=slot + 6 * HOUR * 1000, status="FAILED")
    clock.advance(seconds=10 * HOUR)

    shown = viewer.get(WEEK, {"days": "1"})

    assert bars(shown) == [("failed", round(2000 * 13 / 24), 500)]
    assert f'<a href="/admin/conductor/run/{run.pk}/change/" aria-label="2027-03-01 13:00:00' in html(shown)
    assert "Failed, 6 h" in html(shown)
    assert 'aria-label="nightly: 1 past slot, 1 failed, 0 upcoming"' in html(shown)
    assert bars(viewer.get(WEEK))[0] == ("failed", 155, 71)


def test_an_upcoming_bar_has_the_typical_duration(viewer, clock):
    create_schedule("nightly", "0 0 18 * * *")
    for version, median in ((1, 9), (2, 3 * HOUR * 1000)):
        facts = {"ref": "", "count": 100, "p50_ms": median, "p95_ms": median, "measured_at": 0}
        DurationBaseline.objects.create(name="order", version=version, **facts)

    assert bars(viewer.get(WEEK, {"days": "1"})) == [("upcoming", 1500, 250)]
    assert "upcoming, usually 3 h" in html(viewer.get(WEEK, {"days": "1"}))


def test_a_run_that_is_open_lasts_until_now(viewer, clock):
    create_schedule("nightly", "0 0 13 * * *")
    clock.advance(seconds=HOUR)
    with run_commit_hooks():
        sweeps.fire_schedules(10)
    Run.objects.update(ended_at=None, status="RUNNING")
    clock.advance(seconds=3 * HOUR)

    assert bars(viewer.get(WEEK, {"days": "1"})) == [("active", 1083, 250)]


def test_bars_of_a_frequent_schedule_are_merged(viewer, clock):
    create_schedule("often", "0 0/2 * * * *")
    for _ in range(30):
        clock.advance(seconds=120)
        with run_commit_hooks():
            sweeps.fire_schedules(10)

    shown = viewer.get(WEEK)

    assert len(bars(shown)) < 10
    assert "30 slots" in html(shown)


def test_a_removed_run_leaves_a_gray_bar_in_the_calendar(viewer, clock):
    create_schedule("nightly", "0 0 13 * * *")
    clock.advance(seconds=HOUR)
    with run_commit_hooks():
        sweeps.fire_schedules(10)
    Run.objects.all().delete()

    assert bars(viewer.get(WEEK))[0][0] == "removed"
    assert "run removed" in html(viewer.get(WEEK))


def test_each_day_of_a_week_links_to_its_hours(viewer, clock):
    create_schedule("nightly", "0 0 13 * * *")

    assert 'href="?days=1&amp;from=2027-03-03"' in html(viewer.get(WEEK))
    day = page_text(viewer.get(WEEK, {"days": "1", "from": "2027-03-03"}))
    assert "00:00 03:00 06:00" in day and "Wed 3 Mar 13:00 nightly" in day and "Tue 2 Mar" not in day
