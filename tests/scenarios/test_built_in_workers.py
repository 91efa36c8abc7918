"""Built-in workers, on tasks of real runs."""

import sqlite3

import pytest

from conductor_app.system_tasks.registry import run_built_in_workers
from tests.builders import Document, policy, step
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import Scenario, run_commit_hooks


@pytest.fixture
def server(settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        yield server


def http(ref: str, uri: str, type: str = "HTTP", inputs: Document | None = None, **fields) -> Document:
    """Return an HTTP step."""
    inputs = {"http_request": {"uri": uri, "method": "GET"}, **(inputs or {})}
    return {**step(ref, inputs=inputs, **fields), "type": type}


def work() -> int:
    with run_commit_hooks():
        return run_built_in_workers()


def test_an_http_task_ends_with_the_answer(clock, server):
    server.answers["/a"] = json_answer({"n": 1})
    scenario = Scenario(clock, http("get", f"{server.url}/a"))

    work()

    assert scenario.status == "COMPLETED"
    assert scenario.output["response"]["body"] == {"n": 1}


def test_an_asynchronous_http_task_waits_for_a_report(clock, server):
    server.answers["/a"] = json_answer({"ticket": 7})
    scenario = Scenario(clock, http("get", f"{server.url}/a", asyncComplete=True, policy=policy(lease_seconds=30)))
    work()
    assert scenario.statuses == {"get": "IN_PROGRESS"}
    assert scenario.task("get").output["response"]["body"] == {"ticket": 7}

    scenario.later(10_000)

    assert (work(), scenario.statuses) == (0, {"get": "IN_PROGRESS"})
    assert scenario.reports("get", done=True)
    assert (scenario.status, scenario.output) == ("COMPLETED", {"done": True})


def test_a_failed_request_is_retried_only_within_its_policy(clock, server):
    server.answers["/a"] = [json_answer({}, 503), json_answer({"n": 1})]
    scenario = Scenario(clock, http("get", f"{server.url}/a", policy=policy(retries=1, delay_seconds=5)))
    work()
    assert (scenario.attempts("get"), work()) == (["FAILED", "SCHEDULED"], 0)

    scenario.later(5)
    work()

    assert (scenario.status, len(server.asked)) == ("COMPLETED", 2)


def test_a_poll_is_repeated_by_the_same_attempt_until_its_condition_is_true(clock, server):
    server.answers["/a"] = [json_answer({"done": False}), json_answer({"done": False}), json_answer({"done": True})]
    condition = {"terminationCondition": "$.output.response.body.done", "pollingInterval": 10}
    scenario = Scenario(clock, http("ask", f"{server.url}/a", "HTTP_POLL", condition))

    work()
    assert (scenario.statuses, scenario.task("ask").output["polls"]) == ({"ask": "SCHEDULED"}, 1)
    assert (scenario.at(9).status, work()) == ("RUNNING", 0)
    assert (scenario.at(10).status, work()) == ("RUNNING", 1)
    assert (scenario.at(20).status, work()) == ("RUNNING", 1)

    assert (scenario.status, scenario.output["polls"], scenario.attempts("ask")) == ("COMPLETED", 3, ["COMPLETED"])


def test_a_poll_ends_at_the_timeout_of_its_task(clock, server):
    server.answers["/a"] = json_answer({"done": False})
    condition = {"terminationCondition": "$.output.response.body.done", "pollingInterval": 10}
    limits = policy(timeout_seconds=25, timeout_policy="RETRY")
    scenario = Scenario(clock, http("ask", f"{server.url}/a", "HTTP_POLL", condition, policy=limits))
    for moment in (0, 10, 20, 30):
        scenario.at(moment)
        work()

    assert (scenario.status, scenario.attempts("ask"), len(server.asked)) == ("TIMED_OUT", ["TIMED_OUT"], 3)


def test_an_sql_task_reads_from_a_database_that_the_operator_named(clock, settings, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as made:
        made.execute("CREATE TABLE item (id INTEGER, name TEXT)")
        made.execute("INSERT INTO item VALUES (1, 'pen'), (2, 'ink')")
    settings.CONDUCTOR_SQL_TASK_CONNECTIONS = {"shop": f"sqlite://{tmp_path}/shop.db"}
    inputs = {"connectionId": "shop", "statement": "SELECT name FROM item WHERE id = ?"}
    document = {**step("read", inputs={**inputs, "parameters": ["${workflow.input.id}"]}), "type": "JDBC"}
    scenario = Scenario(clock, document, input={"id": 2})

    work()

    assert (scenario.status, scenario.output) == ("COMPLETED", {"result": [{"name": "ink"}]})


def stored(scenario: Scenario) -> str:
    attempt = scenario.task("get")
    return f"{attempt.input} {attempt.output} {attempt.reason} {scenario.reason} {scenario.output}"


def test_a_secret_in_a_path_is_in_no_reason_and_no_output(clock, server, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "pa ss/wörd")
    server.answers["/pa%20ss/w%C3%B6rd"] = json_answer({}, 500)
    scenario = Scenario(clock, http("get", server.url + "/${workflow.secrets.KEY}"))

    work()

    assert len(server.asked) == 1
    assert scenario.status == "FAILED"
    assert "/***" in scenario.task("get").reason
    assert not [spelled for spelled in ("pa ss", "pa%20ss", "wörd", "w%C3%B6rd") if spelled in stored(scenario)]


def test_a_secret_that_a_server_repeats_is_hidden(clock, server, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_DB", '{"user": "me", "password": "tops3cret"}')
    server.answers["/a"] = json_answer({"you said": ["tops3cret", {"me": 'x"tops3cret"'}]})
    header = {"headers": {"X-Key": "${workflow.secrets.DB.password}"}}
    document = http("get", f"{server.url}/a")
    document["inputParameters"]["http_request"] |= header
    scenario = Scenario(clock, document)

    work()

    assert server.asked[0]["headers"]["x-key"] == "tops3cret"
    assert scenario.output["response"]["body"] == {"you said": ["***", {"me": 'x"***"'}]}
    assert "tops3cret" not in stored(scenario)


def test_a_step_that_names_a_built_in_type_is_done_by_its_worker(clock, server):
    server.answers["/a"] = json_answer({"n": 1})
    inputs = {"kind": "HTTP", "http_request": {"uri": f"{server.url}/a", "method": "GET"}}
    scenario = Scenario(clock, {**step("do", inputs=inputs), "type": "DYNAMIC", "dynamicTaskNameParam": "kind"})
    assert scenario.task("do").lease_ms == 120_000

    work()

    assert (scenario.status, scenario.output["response"]["body"]) == ("COMPLETED", {"n": 1})
