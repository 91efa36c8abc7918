"""The process that serves isolation groups."""

from threading import Event

import pytest

from conductor_app import notifications
from conductor_app.workers import isolation_groups
from conductor_app.workers.isolation_groups import Desk, queues
from tests.builders import policy, step
from tests.management.server import until
from tests.story import Story, forget_all_that_was_seen
from tests.web import answering, as_json


@pytest.mark.django_db(transaction=True)
def test_work_that_comes_while_somebody_waits_is_done(settings, clock, monkeypatch):
    # Who waits at the door when this ends waits to its end.
    monkeypatch.setattr(isolation_groups, "WAIT_MS", 1000)
    forget_all_that_was_seen()
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    stopping = Event()
    desk = Desk("HTTP-blue", stopping, threads=2)
    try:
        with answering() as server:
            server.answers["/a"] = as_json({"n": 1})
            inputs = {"http_request": {"uri": f"{server.url}/a", "method": "GET"}}
            blue = policy() | {"isolationGroupId": "blue"}
            story = Story(clock, {**step("get", inputs=inputs, policy=blue), "type": "HTTP"})

            until(lambda: story.status == "COMPLETED")
    finally:
        stopping.set()
        notifications.announce(["HTTP-blue"])
        for thread in desk.threads:
            thread.join(30)


def test_each_type_that_can_be_isolated_has_a_queue_in_each_group():
    assert queues(["blue", "@east"]) == [
        "HTTP-blue", "HTTP_POLL-blue", "JDBC-blue", "KAFKA_PUBLISH-blue",
        "HTTP@east", "HTTP_POLL@east", "JDBC@east", "KAFKA_PUBLISH@east",
    ]  # fmt: skip
