"""Replays: a preview first, then the replay itself, with a reason."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake as event_intake
from conductor_app.events.commands import webhooks
from conductor_app.events.models import EventAction, EventDelivery, EventHandler
from conductor_app.runs.models import Run
from tests.access.users import client_with
from tests.builders import definition, step
from tests.page_text import html, page_text
from tests.scenario import register_definitions, run_commit_hooks

from .test_handlers import PAID, WRITTEN, receive

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def ship(clock):
    register_definitions(definition(step("pack"), name="ship"))


def address(event: EventDelivery) -> str:
    return f"/admin/events/{event.pk}/replay/"


def replayed(client, event: EventDelivery, **form):
    with run_commit_hooks():
        return client.post(address(event), {"handler": "start", "reason": "the handler was wrong", **form}, follow=True)


def test_an_event_that_came_before_its_handler_is_replayed(clock):
    operator = client_with(role="WORKFLOW_MANAGER")
    receive("m1", total=500, order=7)
    event_handlers.create_handlers([WRITTEN], "ann")
    event = EventDelivery.objects.get()

    plan = operator.get(address(event))
    assert 'start matched $.total > 100 $.total = 500 start_workflow {"name":"ship","input":{"order":7}}' in page_text(
        plan
    )
    assert not Run.objects.exists()

    replayed(operator, event)

    run, fresh = Run.objects.get(name="ship"), EventDelivery.objects.get(replay_of=event)
    shown = operator.get(f"/admin/events/{fresh.pk}/")
    assert f"started run …{run.pk[-4:]}" in page_text(shown)
    assert (fresh.source, fresh.event, fresh.payload) == ("replay", PAID, event.payload)
    assert f"/admin/events/{event.pk}/" in html(shown)
    assert f"/admin/events/{fresh.pk}/" in html(operator.get(f"/admin/events/{event.pk}/"))
    entry = AuditEntry.objects.get(object_type="event")
    assert (entry.actor, entry.action, entry.reason) == ("nina", "replay", "the handler was wrong")


def test_only_the_selected_handlers_process_a_replay(operator):
    event_handlers.create_handlers([WRITTEN, {**WRITTEN, "name": "too"}], "ann")
    receive("m1", total=500)

    replayed(operator, EventDelivery.objects.get(), handler="too")

    assert EventAction.objects.filter(handler="start").count() == 1
    assert EventAction.objects.filter(handler="too").count() == 2


def test_a_replay_requires_a_reason_an_active_handler_and_the_permission(operator, viewer):
    event_handlers.create_handlers([WRITTEN], "ann")
    receive("m1", total=500)
    event = EventDelivery.objects.get()

    assert "Enter a reason." in page_text(replayed(operator, event, reason=" "))
    assert "no longer handles" in page_text(replayed(operator, event, handler="none"))
    assert replayed(viewer, event).status_code == 403
    assert "Replay" not in page_text(viewer.get(f"/admin/events/{event.pk}/"))
    EventHandler.objects.update(is_active=False)
    assert "No handler would process it" in page_text(operator.get(address(event)))
    assert EventDelivery.objects.count() == 1


def test_a_replay_includes_workflows_started_by_the_webhook(operator):
    row = webhooks.create_webhook(
        {"name": "shop", "verifier": "BASIC", "secretValue": "s", "workflowsToStart": {"ship": ""}}, "ann"
    )
    event_intake.receive_event("webhook:shop", "m1", {"order": 7}, "webhook")

    replayed(operator, EventDelivery.objects.get(), handler=f"webhook {row.name}")

    assert Run.objects.get(name="ship").input["order"] == 7
