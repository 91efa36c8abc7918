"""The context fields of log lines: request, job, run and attempt."""

import io
import json
import logging

import pytest
from django.http import HttpResponse
from django.utils.log import log_response

from conductor_app.processes import jobs, sweeps
from conductor_app.runs.models import Attempt, Message
from conductor_app.settings.logs import logging_config
from conductor_app.system_tasks import registry
from conductor_app.system_tasks.registry import workers
from conductor_app.tasks.commands.claims import claim_tasks
from conductor_app.telemetry.log_context import log_context
from tests.builders import policy, step
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db
log = logging.getLogger("conductor_app.test")


@pytest.fixture
def lines():
    """Return the log lines that have been written so far."""
    settings = logging_config("DEBUG", "json")["formatters"]["line"]
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(settings.pop("()")(**settings))
    ours = logging.getLogger("conductor_app")
    level = ours.level
    ours.setLevel(logging.DEBUG)
    ours.addHandler(handler)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    ours.removeHandler(handler)
    ours.setLevel(level)


def breaks(*_, **__):
    raise ZeroDivisionError("by nobody")


def test_every_log_line_of_a_request_has_its_id_and_its_objects(client, clock, lines, monkeypatch):
    scenario = Scenario(clock, step("pay"))
    scenario.worker("pay").polls()
    attempt = scenario.task("pay").id
    monkeypatch.setattr("conductor_app.runs.commands.change.apply_command", breaks)
    body = {
        "workflowInstanceId": scenario.id,
        "taskId": attempt,
        "status": "COMPLETED",
        "outputData": {"card": "4111-1111"},
    }

    client.raise_request_exception = False
    reply = client.post("/api/tasks", body, "application/json", headers={"X-Request-Id": "from-the-proxy"})

    assert reply["X-Request-Id"] == "from-the-proxy"
    assert {line["event"] for line in lines()} >= {"run_undecidable", "request_completed"}
    assert {line["request_id"] for line in lines()} == {"from-the-proxy"}
    line = next(each for each in lines() if each["event"] == "run_undecidable")
    assert (line["run_id"], line["attempt_id"], line["level"]) == (scenario.id, attempt, "error")
    assert "4111-1111" not in json.dumps(lines())


def test_the_line_of_a_refused_request_has_no_signature_of_its_link(rf, lines):
    request = rf.get("/api/files/content/run/file?exp=1&sig=s3cret")

    log_response("Not Found: %s", request.path, response=HttpResponse(status=404), request=request, logger=log)

    [line] = lines()
    assert line["event"] == "Not Found: /api/files/content/run/file"
    assert "s3cret" not in json.dumps(line)


def test_the_objects_of_a_request_are_derived_from_its_path(client, clock, lines):
    scenario = Scenario(clock, step("pay"))

    client.get(f"/api/workflow/{scenario.id}", headers={"X-Request-Id": "r"})

    [line] = [line for line in lines() if line["event"] == "request_completed"]
    assert (line["run_id"], line["method"], line["status"]) == (scenario.id, "GET", 200)


@pytest.mark.parametrize("given", ["", "a b", "a\tb", 'a"b', "x" * 129, "ä"])
def test_an_id_that_could_be_anything_is_replaced(client, given):
    answered = client.get("/health", headers={"X-Request-Id": given})["X-Request-Id"]

    assert answered != given
    assert len(answered) == 32


def test_two_requests_have_two_ids(client):
    assert client.get("/health")["X-Request-Id"] != client.get("/health")["X-Request-Id"]


def test_the_context_of_a_request_ends_with_it(client, lines):
    client.get("/health")

    log.warning("later")

    assert "request_id" not in lines()[-1]


def test_the_context_of_one_run_does_not_leak_into_the_next(lines):
    with log_context("outer", run_id="one", attempt_id="its attempt", request_id="r"):
        with log_context("inner", run_id="two"):
            log.warning("inside")
        log.warning("outside")

    inside, outside = lines()
    assert (inside["run_id"], inside["request_id"]) == ("two", "r")
    assert "attempt_id" not in inside
    assert (outside["run_id"], outside["attempt_id"]) == ("one", "its attempt")


def test_a_sweep_that_skips_a_failing_run_logs_its_id(clock, lines, settings, monkeypatch):
    settings.CONDUCTOR_RAISES_IN_SWEEPS = False
    scenario = Scenario(clock, step("pay", policy=policy(lease_seconds=1)))
    scenario.worker("pay").polls()
    clock.advance(seconds=5)
    monkeypatch.setattr("conductor_app.runs.commands.change.ChangeLoop.run", breaks)

    jobs.sweep.apply()

    line = next(line for line in lines() if line["event"] == "sweep_item_failed")
    assert (line["job"], line["sweep"], line["level"]) == ("sweep", "handle_due_timers", "error")
    assert scenario.id in line["item"]
    assert line["job_id"]


def test_an_undeliverable_message_is_logged_with_its_run(clock, lines, monkeypatch):
    scenario = Scenario(clock, step("pay"))
    message = Message.objects.create(to=scenario.id, subject="begin", sent_at=1, due_at=1)
    monkeypatch.setattr("conductor_app.runs.commands.change.ChangeLoop.run", breaks)

    sweeps.deliver_messages(10)

    [line] = [line for line in lines() if line["event"] == "message_not_delivered"]
    assert line["message_id"] == message.pk
    assert line["run_id"] == scenario.id


def test_a_built_in_worker_logs_its_task(clock, lines, monkeypatch):
    http = {"name": "call", "taskReferenceName": "call", "type": "HTTP", "inputParameters": {"uri": "http://x/?k=hush"}}
    scenario = Scenario(clock, http)
    monkeypatch.setattr(workers()["HTTP"], "work_on", breaks)
    with run_commit_hooks():
        [attempt] = claim_tasks("HTTP", wait_ms=0)
        registry.run_attempt(attempt)

    [line] = [line for line in lines() if line["event"] == "built_in_worker_failed"]
    row = Attempt.objects.get(pk=attempt.id)
    assert (line["run_id"], line["task_id"], line["attempt_id"]) == (scenario.id, row.task_id, row.id)
    assert "hush" not in json.dumps(lines())
