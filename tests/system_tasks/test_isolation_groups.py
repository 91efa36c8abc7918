"""The process that serves isolation groups."""

from threading import Event

import pytest

from conductor_app import notifications
from conductor_app.system_tasks import registry
from conductor_app.system_tasks.registry import QueueServer, queues_of_groups
from tests.builders import policy, step
from tests.management.server import wait_until
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import Scenario


@pytest.mark.django_db(transaction=True)
def test_work_that_arrives_during_a_wait_is_executed(settings, clock, monkeypatch):
    # A request that waits for a slot when this ends would wait until its deadline.
    monkeypatch.setattr(registry, "WAIT_MS", 1000)
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    stopping = Event()
    desk = QueueServer("HTTP-blue", stopping, threads=2)
    try:
        with running_web_server() as server:
            server.answers["/a"] = json_answer({"n": 1})
            inputs = {"http_request": {"uri": f"{server.url}/a", "method": "GET"}}
            blue = policy() | {"isolationGroupId": "blue"}
            scenario = Scenario(clock, {**step("get", inputs=inputs, policy=blue), "type": "HTTP"})

            wait_until(lambda: scenario.status == "COMPLETED")
    finally:
        stopping.set()
        notifications.announce(["HTTP-blue"])
        for thread in desk.threads:
            thread.join(30)


def test_each_type_that_can_be_isolated_has_a_queue_in_each_group():
    assert queues_of_groups(["blue", "@east"]) == [
        "HTTP-blue", "HTTP_POLL-blue", "JDBC-blue", "KAFKA_PUBLISH-blue",
        "HTTP@east", "HTTP_POLL@east", "JDBC@east", "KAFKA_PUBLISH@east",
    ]  # fmt: skip
