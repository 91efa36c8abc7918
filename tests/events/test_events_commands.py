"""Events under faults: no event is lost, and no action runs twice."""

import pytest
from django.db import OperationalError

from conductor_app.core.errors import Busy
from conductor_app.events.commands import handlers as event_actions
from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.models import EventAction, EventDelivery
from conductor_app.processes import sweeps
from conductor_app.runs.commands import messages as delivery
from conductor_app.runs.models import Message, Run
from tests.builders import definition, step
from tests.scenario import register_definitions, run_commit_hooks

pytestmark = pytest.mark.django_db

ACTION = {"action": "start_workflow", "start_workflow": {"name": "other"}}


@pytest.fixture
def handler():
    register_definitions(definition(step("x"), name="other"))
    event_handlers.create_handlers(
        [{"name": "h", "event": "a:b", "active": True, "condition": "true", "actions": [ACTION]}], "me"
    )


def heard_without_what_follows() -> Message:
    """Record an event and simulate the death of the process before its actions run."""
    event_intake.receive_event("a:b", "m", {}, "ann")
    return Message.objects.get(subject="act")


def test_the_sweep_completes_actions_of_a_crashed_process(clock, handler):
    heard_without_what_follows()

    with run_commit_hooks():
        sweeps.deliver_messages(10)

    assert EventAction.objects.get().status == "COMPLETED"
    assert Run.objects.filter(name="other").count() == 1


def test_two_processes_execute_an_action_only_one_time(clock, handler):
    order = heard_without_what_follows()

    with run_commit_hooks():
        event_actions.run_action(order)
        # The other one has read the same message and the same row before.
        row = EventAction.objects.select_related("delivery").get()
        with pytest.raises(event_actions.AlreadyHandled):
            event_actions._dispatch_action(event_actions.ActionRequest(order, row))

    assert Run.objects.filter(name="other").count() == 1


def test_two_deliveries_of_an_event_record_it_one_time(clock, handler):
    now = clock.now()
    facts = {"event": "a:b", "id": "m", "payload": {}}
    message = delivery.read_message(Message.objects.create(subject="event", facts=facts, sent_at=now, due_at=now).pk)

    with run_commit_hooks():
        event_intake.handle_internal_event(message)
        event_intake.handle_internal_event(message)

    received = EventDelivery.objects.get()
    assert (received.duplicates, EventAction.objects.count()) == (0, 1)


@pytest.mark.parametrize("trouble", [Busy(), OperationalError("the database went away")])
def test_a_temporary_error_is_retried(clock, handler, monkeypatch, trouble):
    order = heard_without_what_follows()

    def breaks(*_, **__):
        raise trouble

    with monkeypatch.context() as broken, run_commit_hooks():
        broken.setattr(event_actions, "start_run", breaks)
        assert delivery.deliver(order.pk) is False

    assert EventAction.objects.get().status == "IN_PROGRESS"
    clock.advance(seconds=1)
    with run_commit_hooks():
        sweeps.deliver_messages(10)
    assert EventAction.objects.get().status == "COMPLETED"


def test_a_permanent_error_stops_with_a_reason(clock, handler, monkeypatch):
    order = heard_without_what_follows()
    monkeypatch.setattr(event_actions, "start_run", lambda *_, **__: 1 / 0)

    for _ in range(event_actions.MAX_TRIES):
        with run_commit_hooks():
            delivery.deliver(order.pk)

    action = EventAction.objects.get()
    assert (action.status, action.error) == ("FAILED", "Stopped after 20 tries: ZeroDivisionError.")
    assert not Message.objects.exists()


def test_message_ids_of_any_length_are_distinguished(clock, handler):
    with run_commit_hooks():
        assert event_intake.receive_event("a:b", "x" * 1000, {}, "ann")
        assert event_intake.receive_event("a:b", "x" * 1001, {}, "ann")
        assert not event_intake.receive_event("a:b", "x" * 1001, {}, "ann")


@pytest.mark.parametrize("payload", [None, "text", 7, [1, {"a": "\0"}], {"a": "\ud800"}, {"n": 10**30}])
def test_any_payload_is_received_and_stored(clock, handler, payload):
    with run_commit_hooks():
        assert event_intake.receive_event("a:b", "m\0", payload, "ann")

    assert EventDelivery.objects.get().payload == payload
    assert EventAction.objects.get().status == "COMPLETED"
