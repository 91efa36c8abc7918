"""An error of the moment at any call delays a slot, an event or a message, and is never its result."""

from contextlib import suppress

import pytest

from conductor_app.db.transient_errors import discard_broken_connection
from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.models import EventAction, EventDelivery
from conductor_app.processes import sweeps
from conductor_app.runs.commands import messages as delivery
from conductor_app.runs.models import Message, Run
from conductor_app.schedules.models import ScheduleExecution
from tests.builders import definition, step, sub_workflow
from tests.fault_injection import FaultInjector
from tests.scenario import ACTOR, Scenario, register_definitions
from tests.schedule_helpers import create_schedule, register_order_workflow

KINDS = ("OperationalError", "InternalError", "Busy", "OSError", "StorageUnavailable")
ACTION = {"action": "start_workflow", "start_workflow": {"name": "other"}}


def sweep_for(clock, seconds: int) -> None:
    """Let time pass in steps of half a minute, in which the sweeps handle what is due."""
    for _ in range(seconds // 30):
        discard_broken_connection()
        clock.advance(seconds=30)
        sweeps.sweep_once()


@pytest.mark.parametrize("overlap", ["ALLOW", "QUEUE"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_starts_one_run_whatever_call_fails(kind, overlap, faults: FaultInjector, clock):
    register_order_workflow()
    create_schedule(overlapPolicy=overlap)
    clock.advance(seconds=3600 - clock.now() // 1000 % 3600)
    for fault in faults.at_each_call(kind):
        Run.objects.all().delete()
        ScheduleExecution.objects.all().delete()
        # The job of the sweeps logs the error.
        with fault, suppress(Exception):
            sweeps.fire_schedules(500)
        sweep_for(clock, 300)

        assert list(ScheduleExecution.objects.values_list("state", flat=True)) == ["EXECUTED"], str(fault)
        assert list(Run.objects.values_list("status", flat=True)) == ["RUNNING"], str(fault)
        clock.advance(seconds=3600 - clock.now() // 1000 % 3600)


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_starts_one_run_whatever_call_fails(kind, faults: FaultInjector, clock):
    register_definitions(definition(step("x"), name="other"))
    handler = {"name": "h", "event": "redis:paid", "active": True, "condition": "$.n == 1", "actions": [ACTION]}
    event_handlers.create_handlers([handler], ACTOR)
    for number, fault in enumerate(faults.at_each_call(kind)):
        Run.objects.all().delete()
        EventDelivery.objects.all().delete()
        with fault, suppress(Exception):
            event_intake.receive_event("redis:paid", f"m{number}", {"n": 1}, "redis")
        discard_broken_connection()
        # A consumer repeats what it could not process.
        event_intake.receive_event("redis:paid", f"m{number}", {"n": 1}, "redis")
        sweep_for(clock, 150)

        assert list(EventAction.objects.values_list("status", flat=True)) == ["COMPLETED"], str(fault)
        assert list(Run.objects.values_list("name", flat=True)) == ["other"], str(fault)
        assert not Message.objects.exists(), str(fault)


@pytest.mark.parametrize("kind", KINDS)
def test_a_parent_continues_whatever_call_of_the_delivery_fails(kind, faults: FaultInjector, clock, settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 1_000
    child = definition(step("c"), name="child", outputParameters={"all": "${c.output.text}"})
    for fault in faults.at_each_call(kind):
        scenario = Scenario(clock, sub_workflow("inner"), others=[child])
        with pytest.MonkeyPatch.context() as patch:
            # The process ends after the commit, so that a sweep delivers the message.
            patch.setattr(delivery, "_deliver_in_turn", lambda deliveries: None)
            scenario.worker("c").polls()
            scenario.worker("c").completes(text="x" * 3_000)
        clock.advance(seconds=1)
        with fault, suppress(Exception):
            sweeps.deliver_messages(10)
        sweep_for(clock, 150)

        assert scenario.status == "COMPLETED", str(fault)
        assert not Message.objects.exists(), str(fault)
