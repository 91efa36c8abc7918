"""Schedules: runs on time, one per slot, with downtime, pauses and overlapping runs."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.core.errors import Conflict, Invalid, NotFound
from conductor_app.definitions import commands as definition_commands
from conductor_app.processes import sweeps
from conductor_app.runs.models import Run
from conductor_app.schedules import commands as schedules_commands
from conductor_app.schedules import firing
from conductor_app.schedules import firing as schedules_firing
from conductor_app.schedules.models import Schedule, ScheduleExecution
from tests.scenario import ACTOR, RunView
from tests.scenarios.simulated_time import SimulatedServer
from tests.schedule_helpers import HOURLY, create_schedule, register_order_workflow, slot_outcomes, started_hours

HOUR = 3600


@pytest.fixture
def time(clock) -> SimulatedServer:
    """Return simulated time; due work runs as time passes."""
    register_order_workflow()
    return SimulatedServer(clock)


def test_a_run_is_started_for_each_slot_on_time(time):
    create_schedule()

    time.pass_hours(hours=3)

    assert started_hours(time.started_at) == [1, 2, 3]
    assert [run.created_at - time.started_at for run in Run.objects.order_by("created_at")] == [
        hour * 3_600_000 for hour in (1, 2, 3)
    ]
    assert slot_outcomes() == [("EXECUTED", "")] * 3


def test_the_input_of_a_run_contains_its_slot(time):
    create_schedule(start={"input": {"order": 7, "_scheduledTime": "a lie"}, "correlationId": "c", "priority": 5})

    time.pass_hours(hours=1)

    run, execution = Run.objects.get(), ScheduleExecution.objects.get()
    assert run.input == {
        "order": 7,
        "_startedByScheduler": "hourly",
        "_scheduledTime": time.started_at + 3_600_000,
        "_executedTime": time.started_at + 3_600_000,
        "_executionId": execution.pk,
        "_schedulerCron": HOURLY,
    }
    assert (run.correlation_id, run.priority, run.schedule) == ("c", 5, "hourly")
    assert (execution.run_id, execution.request["input"]) == (run.pk, run.input)


def test_after_a_downtime_only_the_first_missed_slot_runs(time):
    create_schedule()

    time.pass_hours(hours=5.5, sleeping=True)
    time.pass_hours(hours=1)

    assert started_hours(time.started_at) == [1, 6]


def test_catch_up_runs_every_slot_missed_in_a_downtime(time):
    create_schedule(runCatchupScheduleInstances=True)

    time.pass_hours(hours=5.5, sleeping=True)
    time.pass_hours(hours=1)

    assert started_hours(time.started_at) == [1, 2, 3, 4, 5, 6]


def test_catch_up_is_limited_to_its_window(time):
    create_schedule(runCatchupScheduleInstances=True, catchupWindowSeconds=2 * HOUR)

    time.pass_hours(hours=5.5, sleeping=True)
    time.pass_hours(hours=1)

    assert started_hours(time.started_at) == [4, 5, 6]


def test_slots_during_a_pause_are_skipped_even_with_catch_up(time):
    create_schedule(runCatchupScheduleInstances=True)
    time.pass_hours(hours=1)

    schedules_firing.pause_schedule("hourly", ACTOR, "inventory")
    time.pass_hours(hours=2.5)
    assert Schedule.objects.get().next_run_at is None
    schedules_firing.resume_schedule("hourly", ACTOR)
    time.pass_hours(hours=1)

    assert started_hours(time.started_at) == [1, 4]


def test_pausing_all_schedules_behaves_like_a_downtime(time):
    create_schedule("one", runCatchupScheduleInstances=True)
    create_schedule("two")

    schedules_firing.pause_all(ACTOR)
    time.pass_hours(hours=2.5)
    assert Run.objects.count() == 0
    schedules_firing.resume_all(ACTOR)
    time.pass_hours(hours=1)

    assert started_hours(time.started_at) == [1, 1, 2, 3, 3]


def test_a_window_opens_and_closes(time):
    second, third = (time.started_at + hour * 3_600_000 for hour in (2, 3))
    create_schedule(scheduleStartTime=second, scheduleEndTime=third)

    time.pass_hours(hours=6)

    assert started_hours(time.started_at) == [2, 3]
    assert Schedule.objects.get().next_run_at is None


def test_each_entry_starts_runs_of_its_own(time):
    create_schedule(
        cronSchedules=[{"cronExpression": HOURLY}, {"cronExpression": "0 0 15 * * *", "zoneId": "Europe/Berlin"}]
    )

    time.pass_hours(hours=2)

    assert started_hours(time.started_at) == [1, 2, 2]
    assert {row.zone_id for row in ScheduleExecution.objects.all()} == {"UTC", "Europe/Berlin"}
    assert ScheduleExecution.objects.values("id").distinct().count() == 3


def test_a_failed_start_is_recorded_and_the_schedule_continues(time):
    definition_commands.delete_workflow("order", 1, ACTOR)
    create_schedule()

    time.pass_hours(hours=1)
    register_order_workflow()
    time.pass_hours(hours=1)

    assert slot_outcomes() == [("FAILED", "No such workflow found by name: order"), ("EXECUTED", "")]
    assert started_hours(time.started_at) == [2]


def test_an_idempotency_key_of_the_schedule_is_obeyed(time):
    create_schedule(start={"idempotencyKey": "only once", "idempotencyStrategy": "RETURN_EXISTING"})

    time.pass_hours(hours=2)

    assert Run.objects.count() == 1
    assert slot_outcomes() == [("EXECUTED", "")] * 2
    assert {row.run_id for row in ScheduleExecution.objects.all()} == {Run.objects.get().pk}


def test_saving_a_schedule_again_starts_from_now(time):
    create_schedule(runCatchupScheduleInstances=True)
    time.pass_hours(hours=2.5, sleeping=True)

    saved = create_schedule(cron="0 30 * * * *", runCatchupScheduleInstances=True)
    time.pass_hours(hours=1)

    assert started_hours(time.started_at) == [3.5]
    assert saved.created_at == time.started_at
    assert Schedule.objects.get().revision == 2


def test_an_invalid_expression_is_rejected_and_the_schedule_stays_unchanged(time):
    create_schedule()

    with pytest.raises(Invalid, match="cron"):
        create_schedule(cron="* * * * *")

    assert Schedule.objects.get().document["cronExpression"] == HOURLY


def test_a_deleted_schedule_stops_firing_and_its_runs_continue(time):
    create_schedule()
    time.pass_hours(hours=1)

    schedules_commands.delete_schedule("hourly", ACTOR)
    schedules_commands.delete_schedule("hourly", ACTOR)
    time.pass_hours(hours=2)

    assert [run.status for run in Run.objects.all()] == ["RUNNING"]
    assert slot_outcomes() == [("EXECUTED", "")]


def test_overlapping_runs_are_allowed_by_default(time):
    create_schedule()

    time.pass_hours(hours=3)

    assert Run.objects.open().count() == 3


def test_a_slot_is_skipped_while_a_run_is_open(time):
    create_schedule(overlapPolicy="SKIP")

    time.pass_hours(hours=2)
    time.ends(hour=1)
    time.pass_hours(hours=1)

    assert started_hours(time.started_at) == [1, 3]
    assert slot_outcomes() == [("EXECUTED", ""), ("FAILED", "Skipped: an earlier run is still open."), ("EXECUTED", "")]


def test_slots_wait_in_a_queue_for_the_run_before_them(time):
    create_schedule(overlapPolicy="QUEUE")

    time.pass_hours(hours=3)
    assert started_hours(time.started_at) == [1]
    assert [state for state, _ in slot_outcomes()] == ["EXECUTED", "POLLED", "POLLED"]
    time.ends(hour=1)
    time.pass_hours(hours=0.5)
    assert started_hours(time.started_at) == [1, 2]
    time.ends(hour=2)
    time.pass_hours(hours=0.25)

    assert started_hours(time.started_at) == [1, 2, 3]
    assert slot_outcomes() == [("EXECUTED", "")] * 3


def test_a_queue_does_not_grow_without_bound(time, monkeypatch):
    monkeypatch.setattr(firing, "MAX_WAITING", 3)
    create_schedule(cron="0 * * * * *", overlapPolicy="QUEUE")

    time.pass_hours(hours=0.1)

    assert [state for state, _ in slot_outcomes()] == ["EXECUTED", "POLLED", "POLLED", "POLLED", "FAILED", "FAILED"]
    assert slot_outcomes()[-1] == ("FAILED", "Skipped: 3 slots are already waiting.")


def test_the_earlier_run_is_terminated_for_the_next(time):
    create_schedule(overlapPolicy="TERMINATE_OTHER")

    time.pass_hours(hours=2)

    assert [run.status for run in Run.objects.order_by("created_at")] == ["TERMINATED", "RUNNING"]
    assert Run.objects.order_by("created_at")[0].reason == "The schedule hourly starts its next run."


def test_waiting_slots_are_deleted_with_their_schedule(time):
    create_schedule(overlapPolicy="QUEUE")
    time.pass_hours(hours=2)

    schedules_commands.delete_schedule("hourly", ACTOR)
    time.ends(hour=1)
    time.pass_hours(hours=1)

    assert started_hours(time.started_at) == [1]


def test_a_schedule_is_run_now_though_it_is_paused(time):
    create_schedule(paused=True, overlapPolicy="SKIP", start={"input": {"a": 1}})

    run = RunView(time.run_now("hourly"))

    assert run.row.input["a"] == 1
    assert run.row.input["_scheduledTime"] == time.started_at
    assert slot_outcomes() == [("EXECUTED", "")]
    assert AuditEntry.objects.get(action="run now").facts == {"run": run.id}


def test_a_manually_started_run_counts_as_an_overlap(time):
    create_schedule(overlapPolicy="SKIP")
    time.run_now("hourly")

    time.pass_hours(hours=1)

    assert Run.objects.count() == 1


def test_missed_slots_are_backfilled_once(time):
    create_schedule()
    time.pass_hours(hours=4.5, sleeping=True)
    time.pass_hours(hours=0.25)
    assert started_hours(time.started_at) == [1]

    assert schedules_commands.backfill("hourly", time.started_at + 1, time.clock.now(), ACTOR) == 3
    time.pass_hours(hours=0)
    assert schedules_commands.backfill("hourly", time.started_at + 1, time.clock.now(), ACTOR) == 0
    time.pass_hours(hours=0)

    assert started_hours(time.started_at) == [1, 2, 3, 4]
    assert slot_outcomes() == [("EXECUTED", "")] * 4


def test_a_backfill_repeats_failed_slots(time):
    definition_commands.delete_workflow("order", 1, ACTOR)
    create_schedule()
    time.pass_hours(hours=1.5)
    register_order_workflow()

    assert schedules_commands.backfill("hourly", time.started_at + 1, time.clock.now(), ACTOR) == 1
    time.pass_hours(hours=0)

    assert slot_outcomes() == [("EXECUTED", "")]


def test_a_backfill_runs_one_slot_at_a_time_if_overlaps_are_forbidden(time):
    create_schedule(overlapPolicy="SKIP", scheduleStartTime=time.started_at + 10_000 * 3_600_000)
    schedules_firing.pause_schedule("hourly", ACTOR)
    schedules_firing.resume_schedule("hourly", ACTOR)
    Schedule.objects.update(document={**Schedule.objects.get().document, "scheduleStartTime": None})
    time.pass_hours(hours=3.5, sleeping=True)

    assert schedules_commands.backfill("hourly", time.started_at + 1, time.clock.now(), ACTOR) == 3
    time.pass_hours(hours=0)
    assert started_hours(time.started_at) == [1]
    time.ends(hour=1)
    time.pass_hours(hours=0)

    assert started_hours(time.started_at) == [1, 2]


BAD_SPANS = {"not past": (0, 10**15), "backwards": (2000, 1000), "too long": (0, 1_800_000_000_000)}


@pytest.mark.parametrize(("first", "last"), BAD_SPANS.values(), ids=BAD_SPANS)
def test_a_span_that_cannot_be_backfilled_is_refused(time, first, last):
    create_schedule()

    with pytest.raises(Invalid):
        schedules_commands.backfill("hourly", first, last, ACTOR)


def test_a_paused_schedule_is_not_backfilled(time):
    create_schedule(paused=True)

    with pytest.raises(Conflict):
        schedules_commands.backfill("hourly", 0, 1, ACTOR)


def test_a_schedule_without_a_next_slot_gets_one(time):
    create_schedule()
    create_schedule("over", scheduleEndTime=1)
    create_schedule("paused", paused=True)
    Schedule.objects.filter(name="hourly").update(next_run_at=None)

    assert schedules_firing.repair_schedules(ACTOR) == (1, ["hourly"])
    assert Schedule.objects.get(name="hourly").next_run_at == time.started_at + 3_600_000


@pytest.mark.parametrize(
    "command", [schedules_firing.pause_schedule, schedules_firing.resume_schedule, schedules_commands.run_now]
)
def test_an_unknown_schedule_is_not_found(time, command):
    with pytest.raises(NotFound):
        command("nothing", ACTOR)


def test_a_schedule_that_is_not_paused_cannot_be_resumed(time):
    create_schedule()

    with pytest.raises(NotFound):
        schedules_firing.resume_schedule("hourly", ACTOR)


def test_slots_are_removed_after_their_retention(time, settings):
    create_schedule(overlapPolicy="SKIP")
    time.pass_hours(hours=2)
    settings.CONDUCTOR_RETENTION_DAYS = 1

    time.clock.advance(seconds=25 * HOUR)
    sweeps.prune_finished(500)

    assert slot_outcomes() == []
