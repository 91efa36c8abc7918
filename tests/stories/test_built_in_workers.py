"""The workers that ship with the server, on tasks of real runs."""

import sqlite3

import pytest

from conductor_app.workers.runner import run_built_in_workers
from tests.builders import Document, policy, step
from tests.story import Story, run_commit_hooks
from tests.web import json_answer, running_web_server


@pytest.fixture
def server(settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        yield server


def http(ref: str, uri: str, type: str = "HTTP", inputs: Document | None = None, **fields) -> Document:
    """A request."""
    inputs = {"http_request": {"uri": uri, "method": "GET"}, **(inputs or {})}
    return {**step(ref, inputs=inputs, **fields), "type": type}


def work() -> int:
    with run_commit_hooks():
        return run_built_in_workers()


def test_an_http_task_ends_with_the_answer(clock, server):
    server.answers["/a"] = json_answer({"n": 1})
    story = Story(clock, http("get", f"{server.url}/a"))

    work()

    assert story.status == "COMPLETED"
    assert story.output["response"]["body"] == {"n": 1}


def test_an_asynchronous_http_task_waits_for_a_report(clock, server):
    server.answers["/a"] = json_answer({"ticket": 7})
    story = Story(clock, http("get", f"{server.url}/a", asyncComplete=True, policy=policy(lease_seconds=30)))
    work()
    assert story.statuses == {"get": "IN_PROGRESS"}
    assert story.task("get").output["response"]["body"] == {"ticket": 7}

    story.later(10_000)

    assert (work(), story.statuses) == (0, {"get": "IN_PROGRESS"})
    assert story.reports("get", done=True)
    assert (story.status, story.output) == ("COMPLETED", {"done": True})


def test_a_failed_request_is_retried_only_within_its_policy(clock, server):
    server.answers["/a"] = [json_answer({}, 503), json_answer({"n": 1})]
    story = Story(clock, http("get", f"{server.url}/a", policy=policy(retries=1, delay_seconds=5)))
    work()
    assert (story.attempts("get"), work()) == (["FAILED", "SCHEDULED"], 0)

    story.later(5)
    work()

    assert (story.status, len(server.asked)) == ("COMPLETED", 2)


def test_a_poll_is_repeated_by_the_same_attempt_until_its_condition_is_true(clock, server):
    server.answers["/a"] = [json_answer({"done": False}), json_answer({"done": False}), json_answer({"done": True})]
    condition = {"terminationCondition": "$.output.response.body.done", "pollingInterval": 10}
    story = Story(clock, http("ask", f"{server.url}/a", "HTTP_POLL", condition))

    work()
    assert (story.statuses, story.task("ask").output["polls"]) == ({"ask": "SCHEDULED"}, 1)
    assert (story.at(9).status, work()) == ("RUNNING", 0)
    assert (story.at(10).status, work()) == ("RUNNING", 1)
    assert (story.at(20).status, work()) == ("RUNNING", 1)

    assert (story.status, story.output["polls"], story.attempts("ask")) == ("COMPLETED", 3, ["COMPLETED"])


def test_a_poll_ends_at_the_timeout_of_its_task(clock, server):
    server.answers["/a"] = json_answer({"done": False})
    condition = {"terminationCondition": "$.output.response.body.done", "pollingInterval": 10}
    limits = policy(timeout_seconds=25, timeout_policy="RETRY")
    story = Story(clock, http("ask", f"{server.url}/a", "HTTP_POLL", condition, policy=limits))
    for moment in (0, 10, 20, 30):
        story.at(moment)
        work()

    assert (story.status, story.attempts("ask"), len(server.asked)) == ("TIMED_OUT", ["TIMED_OUT"], 3)


def test_an_sql_task_reads_from_a_database_that_the_operator_named(clock, settings, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as made:
        made.execute("CREATE TABLE item (id INTEGER, name TEXT)")
        made.execute("INSERT INTO item VALUES (1, 'pen'), (2, 'ink')")
    settings.CONDUCTOR_SQL_TASK_CONNECTIONS = {"shop": f"sqlite://{tmp_path}/shop.db"}
    inputs = {"connectionId": "shop", "statement": "SELECT name FROM item WHERE id = ?"}
    document = {**step("read", inputs={**inputs, "parameters": ["${workflow.input.id}"]}), "type": "JDBC"}
    story = Story(clock, document, input={"id": 2})

    work()

    assert (story.status, story.output) == ("COMPLETED", {"result": [{"name": "ink"}]})


def stored(story: Story) -> str:
    attempt = story.task("get")
    return f"{attempt.input} {attempt.output} {attempt.reason} {story.reason} {story.output}"


def test_a_secret_in_a_path_is_in_no_reason_and_no_output(clock, server, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_KEY", "pa ss/wörd")
    server.answers["/pa%20ss/w%C3%B6rd"] = json_answer({}, 500)
    story = Story(clock, http("get", server.url + "/${workflow.secrets.KEY}"))

    work()

    assert len(server.asked) == 1
    assert story.status == "FAILED"
    assert "/***" in story.task("get").reason
    assert not [spelled for spelled in ("pa ss", "pa%20ss", "wörd", "w%C3%B6rd") if spelled in stored(story)]


def test_a_secret_that_a_server_repeats_is_hidden(clock, server, monkeypatch):
    monkeypatch.setenv("CONDUCTOR_SECRET_DB", '{"user": "me", "password": "tops3cret"}')
    server.answers["/a"] = json_answer({"you said": ["tops3cret", {"me": 'x"tops3cret"'}]})
    header = {"headers": {"X-Key": "${workflow.secrets.DB.password}"}}
    document = http("get", f"{server.url}/a")
    document["inputParameters"]["http_request"] |= header
    story = Story(clock, document)

    work()

    assert server.asked[0]["headers"]["x-key"] == "tops3cret"
    assert story.output["response"]["body"] == {"you said": ["***", {"me": 'x"***"'}]}
    assert "tops3cret" not in stored(story)


def test_a_step_that_names_a_built_in_type_is_done_by_its_worker(clock, server):
    server.answers["/a"] = json_answer({"n": 1})
    inputs = {"kind": "HTTP", "http_request": {"uri": f"{server.url}/a", "method": "GET"}}
    story = Story(clock, {**step("do", inputs=inputs), "type": "DYNAMIC", "dynamicTaskNameParam": "kind"})
    assert story.task("do").lease_ms == 120_000

    work()

    assert (story.status, story.output["response"]["body"]) == ("COMPLETED", {"n": 1})
