"""Schedules start runs by the clock: on time, once a slot, through downtime, pauses and overlaps."""

import pytest

from conductor_app.core.errors import Conflict, Invalid, NotFound
from conductor_app.engine import definitions, schedules, sweeps
from conductor_app.engine.schedules import firing
from conductor_app.models import AuditEntry, Run, Schedule, ScheduleExecution
from tests.schedules import HOURLY, came_to, hours, order_is_known, scheduled
from tests.stories.time import Time
from tests.story import BY, View

HOUR = 3600


@pytest.fixture
def time(clock) -> Time:
    """Hours that pass, with what is due in them."""
    order_is_known()
    return Time(clock)


def test_a_run_is_started_at_every_slot_at_its_moment(time):
    scheduled()

    time.passes(hours=3)

    assert hours(time.began) == [1, 2, 3]
    assert [run.created_at - time.began for run in Run.objects.order_by("created_at")] == [
        hour * 3_600_000 for hour in (1, 2, 3)
    ]
    assert came_to() == [("EXECUTED", "")] * 3


def test_a_run_is_told_which_slot_started_it(time):
    scheduled(start={"input": {"order": 7, "_scheduledTime": "a lie"}, "correlationId": "c", "priority": 5})

    time.passes(hours=1)

    run, execution = Run.objects.get(), ScheduleExecution.objects.get()
    assert run.input == {
        "order": 7,
        "_startedByScheduler": "hourly",
        "_scheduledTime": time.began + 3_600_000,
        "_executedTime": time.began + 3_600_000,
        "_executionId": execution.pk,
        "_schedulerCron": HOURLY,
    }
    assert (run.correlation_id, run.priority, run.schedule) == ("c", 5, "hourly")
    assert (execution.run_id, execution.request["input"]) == (run.pk, run.input)


def test_slots_of_a_downtime_are_passed_over_but_for_the_first(time):
    scheduled()

    time.passes(hours=5.5, sleeping=True)
    time.passes(hours=1)

    assert hours(time.began) == [1, 6]


def test_slots_of_a_downtime_are_caught_up_with_where_that_is_asked_for(time):
    scheduled(runCatchupScheduleInstances=True)

    time.passes(hours=5.5, sleeping=True)
    time.passes(hours=1)

    assert hours(time.began) == [1, 2, 3, 4, 5, 6]


def test_catching_up_goes_back_as_far_as_its_window(time):
    scheduled(runCatchupScheduleInstances=True, catchupWindowSeconds=2 * HOUR)

    time.passes(hours=5.5, sleeping=True)
    time.passes(hours=1)

    assert hours(time.began) == [4, 5, 6]


def test_slots_of_a_pause_are_passed_over_even_with_catch_up(time):
    scheduled(runCatchupScheduleInstances=True)
    time.passes(hours=1)

    schedules.pause_schedule("hourly", BY, "inventory")
    time.passes(hours=2.5)
    assert Schedule.objects.get().next_run_at is None
    schedules.resume_schedule("hourly", BY)
    time.passes(hours=1)

    assert hours(time.began) == [1, 4]


def test_all_schedules_are_held_and_go_on_as_after_a_downtime(time):
    scheduled("one", runCatchupScheduleInstances=True)
    scheduled("two")

    schedules.pause_all(BY)
    time.passes(hours=2.5)
    assert Run.objects.count() == 0
    schedules.resume_all(BY)
    time.passes(hours=1)

    assert hours(time.began) == [1, 1, 2, 3, 3]


def test_a_window_opens_and_closes(time):
    second, third = (time.began + hour * 3_600_000 for hour in (2, 3))
    scheduled(scheduleStartTime=second, scheduleEndTime=third)

    time.passes(hours=6)

    assert hours(time.began) == [2, 3]
    assert Schedule.objects.get().next_run_at is None


def test_each_entry_starts_runs_of_its_own(time):
    scheduled(cronSchedules=[{"cronExpression": HOURLY}, {"cronExpression": "0 0 15 * * *", "zoneId": "Europe/Berlin"}])

    time.passes(hours=2)

    assert hours(time.began) == [1, 2, 2]
    assert {row.zone_id for row in ScheduleExecution.objects.all()} == {"UTC", "Europe/Berlin"}
    assert ScheduleExecution.objects.values("id").distinct().count() == 3


def test_a_start_that_fails_is_noted_and_the_schedule_goes_on(time):
    definitions.delete_workflow("order", 1, BY)
    scheduled()

    time.passes(hours=1)
    order_is_known()
    time.passes(hours=1)

    assert came_to() == [("FAILED", "No such workflow found by name: order"), ("EXECUTED", "")]
    assert hours(time.began) == [2]


def test_an_idempotency_key_of_the_schedule_is_obeyed(time):
    scheduled(start={"idempotencyKey": "only once", "idempotencyStrategy": "RETURN_EXISTING"})

    time.passes(hours=2)

    assert Run.objects.count() == 1
    assert came_to() == [("EXECUTED", "")] * 2
    assert {row.run_id for row in ScheduleExecution.objects.all()} == {Run.objects.get().pk}


def test_saving_a_schedule_anew_begins_from_now(time):
    scheduled(runCatchupScheduleInstances=True)
    time.passes(hours=2.5, sleeping=True)

    saved = scheduled(cron="0 30 * * * *", runCatchupScheduleInstances=True)
    time.passes(hours=1)

    assert hours(time.began) == [3.5]
    assert saved.created_at == time.began
    assert Schedule.objects.get().revision == 2


def test_a_bad_expression_is_refused_and_the_schedule_stays_as_it_is(time):
    scheduled()

    with pytest.raises(Invalid, match="cron"):
        scheduled(cron="* * * * *")

    assert Schedule.objects.get().document["cronExpression"] == HOURLY


def test_a_forgotten_schedule_fires_no_more_and_what_it_started_goes_on(time):
    scheduled()
    time.passes(hours=1)

    schedules.delete_schedule("hourly", BY)
    schedules.delete_schedule("hourly", BY)
    time.passes(hours=2)

    assert [run.status for run in Run.objects.all()] == ["RUNNING"]
    assert came_to() == [("EXECUTED", "")]


def test_overlapping_runs_are_allowed_where_nothing_is_said(time):
    scheduled()

    time.passes(hours=3)

    assert Run.objects.open().count() == 3


def test_a_slot_is_skipped_while_a_run_is_open(time):
    scheduled(overlapPolicy="SKIP")

    time.passes(hours=2)
    time.ends(hour=1)
    time.passes(hours=1)

    assert hours(time.began) == [1, 3]
    assert came_to() == [("EXECUTED", ""), ("FAILED", "Skipped: an earlier run is still open."), ("EXECUTED", "")]


def test_slots_wait_in_a_queue_for_the_run_before_them(time):
    scheduled(overlapPolicy="QUEUE")

    time.passes(hours=3)
    assert hours(time.began) == [1]
    assert [state for state, _ in came_to()] == ["EXECUTED", "POLLED", "POLLED"]
    time.ends(hour=1)
    time.passes(hours=0.5)
    assert hours(time.began) == [1, 2]
    time.ends(hour=2)
    time.passes(hours=0.25)

    assert hours(time.began) == [1, 2, 3]
    assert came_to() == [("EXECUTED", "")] * 3


def test_a_queue_does_not_grow_without_bound(time, monkeypatch):
    monkeypatch.setattr(firing, "MOST_WAITING", 3)
    scheduled(cron="0 * * * * *", overlapPolicy="QUEUE")

    time.passes(hours=0.1)

    assert [state for state, _ in came_to()] == ["EXECUTED", "POLLED", "POLLED", "POLLED", "FAILED", "FAILED"]
    assert came_to()[-1] == ("FAILED", "Skipped: 3 slots wait already.")


def test_the_earlier_run_is_terminated_for_the_next(time):
    scheduled(overlapPolicy="TERMINATE_OTHER")

    time.passes(hours=2)

    assert [run.status for run in Run.objects.order_by("created_at")] == ["TERMINATED", "RUNNING"]
    assert Run.objects.order_by("created_at")[0].reason == "The schedule hourly starts its next run."


def test_slots_that_wait_are_forgotten_with_their_schedule(time):
    scheduled(overlapPolicy="QUEUE")
    time.passes(hours=2)

    schedules.delete_schedule("hourly", BY)
    time.ends(hour=1)
    time.passes(hours=1)

    assert hours(time.began) == [1]


def test_a_schedule_is_run_now_though_it_is_paused(time):
    scheduled(paused=True, overlapPolicy="SKIP", start={"input": {"a": 1}})

    run = View(time.run_now("hourly"))

    assert run.row.input["a"] == 1
    assert run.row.input["_scheduledTime"] == time.began
    assert came_to() == [("EXECUTED", "")]
    assert AuditEntry.objects.get(action="run now").facts == {"run": run.id}


def test_a_run_that_was_asked_for_counts_as_an_overlap(time):
    scheduled(overlapPolicy="SKIP")
    time.run_now("hourly")

    time.passes(hours=1)

    assert Run.objects.count() == 1


def test_what_was_missed_is_backfilled_once(time):
    scheduled()
    time.passes(hours=4.5, sleeping=True)
    time.passes(hours=0.25)
    assert hours(time.began) == [1]

    assert schedules.backfill("hourly", time.began + 1, time.clock.now(), BY) == 3
    time.passes(hours=0)
    assert schedules.backfill("hourly", time.began + 1, time.clock.now(), BY) == 0
    time.passes(hours=0)

    assert hours(time.began) == [1, 2, 3, 4]
    assert came_to() == [("EXECUTED", "")] * 4


def test_a_backfill_tries_again_what_had_failed(time):
    definitions.delete_workflow("order", 1, BY)
    scheduled()
    time.passes(hours=1.5)
    order_is_known()

    assert schedules.backfill("hourly", time.began + 1, time.clock.now(), BY) == 1
    time.passes(hours=0)

    assert came_to() == [("EXECUTED", "")]


def test_a_backfill_goes_one_by_one_where_runs_must_not_overlap(time):
    scheduled(overlapPolicy="SKIP", scheduleStartTime=time.began + 10_000 * 3_600_000)
    schedules.pause_schedule("hourly", BY)
    schedules.resume_schedule("hourly", BY)
    Schedule.objects.update(document={**Schedule.objects.get().document, "scheduleStartTime": None})
    time.passes(hours=3.5, sleeping=True)

    assert schedules.backfill("hourly", time.began + 1, time.clock.now(), BY) == 3
    time.passes(hours=0)
    assert hours(time.began) == [1]
    time.ends(hour=1)
    time.passes(hours=0)

    assert hours(time.began) == [1, 2]


BAD_SPANS = {"not past": (0, 10**15), "backwards": (2000, 1000), "too long": (0, 1_800_000_000_000)}


@pytest.mark.parametrize(("first", "last"), BAD_SPANS.values(), ids=BAD_SPANS)
def test_a_span_that_cannot_be_backfilled_is_refused(time, first, last):
    scheduled()

    with pytest.raises(Invalid):
        schedules.backfill("hourly", first, last, BY)


def test_a_paused_schedule_is_not_backfilled(time):
    scheduled(paused=True)

    with pytest.raises(Conflict):
        schedules.backfill("hourly", 0, 1, BY)


def test_a_schedule_that_has_lost_its_next_moment_is_given_one(time):
    scheduled()
    scheduled("over", scheduleEndTime=1)
    scheduled("paused", paused=True)
    Schedule.objects.filter(name="hourly").update(next_run_at=None)

    assert schedules.repair_schedules(BY) == (1, ["hourly"])
    assert Schedule.objects.get(name="hourly").next_run_at == time.began + 3_600_000


@pytest.mark.parametrize("command", [schedules.pause_schedule, schedules.resume_schedule, schedules.run_now])
def test_what_is_not_there_is_not_found(time, command):
    with pytest.raises(NotFound):
        command("nothing", BY)


def test_a_schedule_that_is_not_paused_cannot_be_resumed(time):
    scheduled()

    with pytest.raises(NotFound):
        schedules.resume_schedule("hourly", BY)


def test_old_slots_are_removed_when_their_retention_is_over(time, settings):
    scheduled(overlapPolicy="SKIP")
    time.passes(hours=2)
    settings.CONDUCTOR_RETENTION_DAYS = 1

    time.clock.advance(seconds=25 * HOUR)
    sweeps.prune_finished(500)

    assert came_to() == []
