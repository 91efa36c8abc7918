"""Event sources and the state of their connections."""

import pytest

from conductor_app.events.commands import handlers as event_handlers
from conductor_app.events.commands import intake
from conductor_app.events.models import EventListener
from conductor_app.events.queries import SETTINGS
from conductor_app.events.sinks import PROVIDERS
from tests.page_text import page_text

from .test_handlers import WRITTEN, receive

pytestmark = pytest.mark.django_db
SOURCES = "/admin/event-sources/"


def handle(name: str, event: str) -> None:
    event_handlers.create_handlers([{**WRITTEN, "name": name, "event": event}], "ann")


def listening(event: str, process: str = "host:7", **facts) -> None:
    intake.record_listeners([EventListener(event=event, process=process, **facts)])


def test_the_page_lists_every_subscribed_system():
    assert {*SETTINGS, "conductor"} == set(PROVIDERS)


def test_an_empty_page_explains_event_sources(viewer):
    assert "No event sources" in page_text(viewer.get(SOURCES))


def test_internal_sources_need_no_subscriber(viewer, clock):
    handle("start", WRITTEN["event"])
    receive("m1")

    assert "conductor:orders:paid Direct (API) 0 s ago 1" in page_text(viewer.get(SOURCES))


def test_connected_failing_and_missing_subscribers_are_displayed(viewer, clock, settings):
    settings.CONDUCTOR_EVENT_QUEUES_REDIS_URL = "redis://somewhere"
    for name in ("up", "down", "alone"):
        handle(name, f"redis:{name}")
    handle("else", "kafka:orders")
    listening("redis:up", connected_at=clock.now(), last_message_at=clock.now())
    listening("redis:down", failed_at=clock.now(), error="redis cannot be reached: ConnectionError.")

    shown = page_text(viewer.get(SOURCES))

    assert "redis:up connected host:7, connected 0 s ago · last message 0 s ago" in shown
    assert "redis:down not connected host:7, broken 0 s ago redis cannot be reached: ConnectionError." in shown
    assert "redis:alone no subscriber No process receives events from other systems" in shown
    assert "kafka:orders not configured The server is started without EVENT_QUEUES_KAFKA_SERVERS." in shown


def test_a_listener_that_has_fallen_silent_is_not_there(viewer, clock, settings):
    settings.CONDUCTOR_EVENT_QUEUES_REDIS_URL = "redis://somewhere"
    handle("up", "redis:up")
    listening("redis:up", connected_at=clock.now())

    clock.advance(seconds=61)

    assert "no subscriber" in page_text(viewer.get(SOURCES))


def test_a_subscriber_reports_its_state_and_unregisters(clock):
    listening("redis:up")
    listening("redis:up", connected_at=clock.now())
    listening("redis:up", "other:1")
    assert EventListener.objects.get(process="host:7").connected_at == clock.now()

    intake.remove_listeners("host:7", ["redis:up"])
    assert [row.process for row in EventListener.objects.all()] == ["other:1"]
    clock.advance(seconds=90_000)
    listening("redis:else")
    assert [row.event for row in EventListener.objects.all()] == ["redis:else"]


def test_the_page_updates_its_content(viewer, clock):
    handle("start", WRITTEN["event"])
    revision = viewer.get(SOURCES).context["live_revision"]

    assert viewer.get(f"{SOURCES}live/?rev={revision}").status_code == 204
