"""Delivery of outbox messages to other systems: guarded, retried, never lost."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from conductor_app.events.commands import outbox
from conductor_app.events.workers.publisher import publish_due_events
from conductor_app.processes import sweeps
from conductor_app.runs.models import Message
from tests.builders import noop, step
from tests.scenario import Scenario

pytestmark = pytest.mark.django_db


class Listening(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.requests.append((self.headers, json.loads(self.rfile.read(int(self.headers["content-length"])))))
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def listener(settings):
    """Yield a listener that the server's settings name."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listening)
    server.daemon_threads, server.requests, server.status = True, [], 200
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    settings.CONDUCTOR_WORKFLOW_STATUS_LISTENER_URL = (
        f"http://me:secret@127.0.0.1:{server.server_port}/status?key=secret"
    )
    yield server
    server.shutdown()
    server.server_close()


def test_the_status_of_a_run_is_posted_to_the_listener(clock, listener):
    scenario = Scenario(clock, noop("a"), workflowStatusListenerEnabled=True)

    assert publish_due_events() == 3

    assert [body["event"] for _, body in listener.requests] == ["STARTED", "COMPLETED", "FINALIZED"]
    headers, body = listener.requests[0]
    assert body["workflowId"] == scenario.id
    assert headers["X-Conductor-Message-Id"]
    assert headers["content-type"].startswith("application/json")
    assert not Message.objects.exists()


def test_the_status_of_a_task_is_posted_to_its_own_listener(clock, listener, settings):
    settings.CONDUCTOR_TASK_STATUS_LISTENER_URL = settings.CONDUCTOR_WORKFLOW_STATUS_LISTENER_URL
    Scenario(clock, noop("a"), name="posted task by task")

    assert publish_due_events() == 1

    [(_, body)] = listener.requests
    assert (body["event"], body["referenceTaskName"], body["status"]) == ("TASK_STATUS", "a", "COMPLETED")


def test_delivery_to_a_failing_listener_is_retried_without_loss(clock, listener):
    listener.status = 500
    Scenario(clock, noop("a"), workflowStatusListenerEnabled=True)

    assert publish_due_events() == 0
    # One failure per round is enough to detect.
    assert len(listener.requests) == 1
    assert publish_due_events() == 0
    assert len(listener.requests) == 1

    listener.status = 200
    clock.advance(seconds=1)
    assert publish_due_events() == 3
    assert [body["event"] for _, body in listener.requests[1:]] == ["STARTED", "COMPLETED", "FINALIZED"]


def test_the_reason_is_stored_without_the_secrets_of_the_address(clock, listener):
    listener.status = 500
    Scenario(clock, step("a"), workflowStatusListenerEnabled=True)

    publish_due_events()

    message = Message.objects.get()
    assert "500" in message.error or "HTTP" in message.error
    assert "secret" not in message.error
    assert message.tries == 1


def test_nothing_is_sent_to_a_listener_in_a_forbidden_network(clock, listener, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ()
    Scenario(clock, step("a"), workflowStatusListenerEnabled=True)

    assert publish_due_events() == 0

    assert listener.requests == []
    assert "127.0.0.1" in Message.objects.get().error


def test_a_failing_sink_does_not_block_the_others(clock, listener):
    Scenario(clock, step("a"), workflowStatusListenerEnabled=True, workflowStatusListenerSink="nonsense:queue")
    Scenario(clock, step("a"), name="other", workflowStatusListenerEnabled=True)

    assert publish_due_events() == 1

    assert "has an unknown provider" in Message.objects.get().error


def test_messages_of_a_dead_publisher_are_claimed_by_another(clock, listener):
    Scenario(clock, step("a"), workflowStatusListenerEnabled=True)

    assert len(outbox.take_due(10)) == 1
    assert outbox.take_due(10) == []
    clock.advance(seconds=120)

    assert publish_due_events() == 1


def test_undeliverable_messages_are_kept_for_inspection_and_then_deleted(clock, listener, settings, monkeypatch):
    settings.CONDUCTOR_EVENT_RETENTION_DAYS = 7
    monkeypatch.setattr(outbox, "MAX_TRIES", 2)
    listener.status = 500
    Scenario(clock, step("a"), workflowStatusListenerEnabled=True)

    for _ in range(4):
        publish_due_events()
        clock.advance(seconds=600)

    assert len(listener.requests) == 2
    assert Message.objects.get().tries == 2
    sweeps.prune_events(10)
    assert Message.objects.exists()
    clock.advance(seconds=8 * 86_400)
    sweeps.prune_events(10)
    assert not Message.objects.exists()


def test_a_stopping_publisher_releases_its_messages(clock, listener):
    Scenario(clock, noop("a"), workflowStatusListenerEnabled=True)
    answers = iter([False, False, True, True])

    assert publish_due_events(lambda: next(answers)) == 1

    assert publish_due_events() == 2
