"""Isolation groups and namespaces: their tasks wait for the built-in workers that serve them (execution §5.2)."""

import pytest

from conductor_app.runs.documents.workflows import run_document
from conductor_app.system_tasks.registry import queues_of_groups, run_built_in_workers
from tests.builders import Document, policy, step
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import Scenario, explain_attempt, run_commit_hooks

EAST_BLUE = {"isolationGroupId": "blue", "executionNameSpace": "east"}


@pytest.fixture
def server(settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        server.answers["/a"] = json_answer({"n": 1})
        yield server


def http(server, **isolation: str) -> Document:
    """Return an HTTP step in an isolation group."""
    inputs = {"http_request": {"uri": f"{server.url}/a", "method": "GET"}}
    return {**step("get", inputs=inputs, policy=policy(retries=1) | isolation), "type": "HTTP"}


@pytest.mark.parametrize(
    ("isolation", "queue", "group"),
    [
        ({"isolationGroupId": "blue"}, "HTTP-blue", "blue"),
        ({"executionNameSpace": "east"}, "HTTP@east", "@east"),
        (EAST_BLUE, "HTTP@east-blue", "@east-blue"),
    ],
)
def test_only_workers_of_the_group_execute_its_tasks(clock, server, isolation, queue, group):
    scenario = Scenario(clock, http(server, **isolation))

    with run_commit_hooks():
        assert (run_built_in_workers(), scenario.queue(queue)) == (0, ["get, attempt 1"])
        assert run_built_in_workers(queues=queues_of_groups(["green", group])) == 1

    assert (scenario.status, len(server.asked)) == ("COMPLETED", 1)


def test_workers_of_a_group_execute_no_other_tasks(clock, server):
    scenario = Scenario(clock, http(server))

    with run_commit_hooks():
        assert run_built_in_workers(queues=queues_of_groups(["blue", "@east"])) == 0

    assert scenario.queue("HTTP") == ["get, attempt 1"]


def test_the_page_reports_a_group_without_workers(clock, server):
    scenario = Scenario(clock, http(server, isolationGroupId="blue"))

    [verdict] = [verdict for verdict in explain_attempt(scenario.task("get").id) if not verdict.is_open]

    assert verdict.sentence == "No worker has ever polled queue `HTTP-blue`."


def test_a_further_attempt_waits_in_the_same_queue(clock, server):
    scenario = Scenario(clock, http(server, **EAST_BLUE))

    scenario.worker("HTTP@east-blue").fails()

    assert scenario.queue("HTTP@east-blue") == ["get, attempt 2"]


def test_steps_without_a_built_in_worker_continue_without_their_group(clock):
    """Wait and script steps also continue; in the original they never run if no worker serves the group."""
    isolated = policy() | EAST_BLUE
    evaluated = {"evaluatorType": "javascript", "expression": "1"}
    scenario = Scenario(
        clock,
        {**step("sum", inputs=evaluated, policy=isolated), "type": "INLINE"},
        {**step("nap", inputs={"duration": "1 s"}, policy=isolated), "type": "WAIT"},
        step("pay", policy=isolated),
    )

    scenario.later(5)

    assert scenario.queue("pay") == ["pay, attempt 1"]
    borne = {task["referenceTaskName"]: task.get("isolationGroupId") for task in run_document(scenario.row)["tasks"]}
    assert borne == {"sum": "blue", "nap": "blue", "pay": None}
