"""An error of the moment at any call delays a command, and neither ends a run nor loses a report, a task or a start."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import close_old_connections
from django.http import HttpResponse
from django.test import Client

from conductor_app.access.commands import secrets as secrets_and_variables
from conductor_app.core.decide import Report
from conductor_app.db import transient_errors as transient_faults
from conductor_app.db.transient_errors import is_transient
from conductor_app.processes import sweeps
from conductor_app.runs.commands import control
from conductor_app.runs.commands import repair as run_commands_repair
from conductor_app.runs.commands.start import StartRequest, start_run
from conductor_app.runs.models import Run, TaskLog
from conductor_app.tasks.commands import reports as task_commands
from tests.builders import definition, jq, policy, step, sub_workflow, wait
from tests.conftest import Clock
from tests.fault_injection import ERRORS, Fault, FaultInjector
from tests.runs.report_contexts import row_violations
from tests.scenario import ACTOR, RunView, Worker, register_definitions

pytestmark = pytest.mark.parametrize("kind", ERRORS)
SECRET = "a-long-secret-value"
LARGE = "x" * 3_000
SECRET_INPUT = {"token": "${workflow.secrets.TOKEN}", "text": "${workflow.input.text}"}
MAX_TRIES = 4


@pytest.fixture(autouse=True)
def _immediate_repetitions(monkeypatch):
    monkeypatch.setattr(transient_faults, "REPEAT_DELAYS", (0, 0))


@pytest.fixture(autouse=True)
def _payloads_outside_of_rows(settings):
    settings.CONDUCTOR_TASK_PAYLOAD_SOFT_BYTES = settings.CONDUCTOR_WORKFLOW_PAYLOAD_SOFT_BYTES = 1_000


@pytest.fixture(autouse=True)
def _secret(transactional_db):
    secrets_and_variables.put_secret("TOKEN", SECRET, ACTOR)


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


def start(name: str = "order") -> RunView:
    return RunView(start_run(StartRequest(name, input={"text": LARGE}), ACTOR))


def report(run: RunView, ref: str, output: dict[str, Any], log: str = "") -> Callable[[], bool]:
    """Return the function that reports on a task."""
    options = task_commands.ReportOptions(logs=[(log, 1)] if log else ())
    completed = Report("COMPLETED", output)
    return partial(task_commands.report_task, run.id, run.task(ref).id, completed, ACTOR, options)


def repeat(fault: Fault, command: Callable[[], Any]) -> Any:
    """Call a command within the fault, and again if it raises an error after which clients repeat their request."""
    with fault:
        try:
            return command()
        except Exception as error:
            assert is_transient(error), f"{error!r} after {fault}"
    close_old_connections()
    return command()


def sweep_until(is_done: Callable[[], bool], clock: Clock) -> None:
    """Let time pass, at most two minutes, in steps in which the sweeps handle what is due."""
    for _ in range(4):
        if is_done():
            break
        clock.advance(seconds=30)
        close_old_connections()
        sweeps.sweep_once()


def test_a_run_is_started_once(kind, faults: FaultInjector, clock):
    register_definitions(definition(step("a", inputs=SECRET_INPUT), name="order"))
    for fault in faults.at_each_call(kind):
        Run.objects.all().delete()

        run = repeat(fault, start)

        assert list(Run.objects.values_list("id", "status")) == [(run.id, "RUNNING")], str(fault)
        assert run.statuses == {"a": "SCHEDULED"}, str(fault)


def test_a_report_is_stored_or_repeated(kind, faults: FaultInjector, clock):
    steps = step("a", inputs=SECRET_INPUT), step("b", inputs={"all": "${a.output}"})
    register_definitions(definition(*steps, name="order"))
    for fault in faults.at_each_call(kind):
        run = start()

        repeat(fault, report(run, "a", {"text": LARGE, "said": SECRET}, log=f"used {SECRET}"))

        assert run.statuses == {"a": "COMPLETED", "b": "SCHEDULED"}, str(fault)
        lines = TaskLog.objects.filter(attempt_id=run.task("a").id).values_list("line", flat=True)
        assert list(lines) == ["used ***"], str(fault)
        worker = Worker("b", "w", "")
        worker.polls()
        assert worker.held.input["all"] == {"text": LARGE, "said": "***"}, str(fault)
        assert row_violations(run.id) == [], str(fault)


def repeat_request(fault: Fault, clock: Clock, send: Callable[[], HttpResponse]) -> dict[str, Any]:
    """Send a request as a worker does that repeats it after an error. Returns the task that it receives."""
    with fault:
        reply = send()
    for _ in range(MAX_TRIES):
        if reply.status_code == 200:
            return json.loads(reply.content)
        # An input that the storage did not return is asked for again after half a minute.
        clock.advance(seconds=10)
        close_old_connections()
        reply = send()
    raise AssertionError(f"no task after {fault}: {reply.status_code} {reply.content!r}")


@pytest.mark.parametrize("limit", [0, 5])
def test_a_task_whose_claim_was_not_answered_is_given_to_the_next_poll(
    kind, limit, faults: FaultInjector, client, clock
):
    register_definitions(
        definition(step("a", inputs=SECRET_INPUT, policy=policy(concurrent_limit=limit)), name="order")
    )
    for fault in faults.at_each_call(kind):
        run = start()

        task = repeat_request(fault, clock, partial(client.get, "/api/tasks/poll/a?workerid=w"))

        assert task["inputData"] == {"token": SECRET, "text": LARGE}, str(fault)
        assert run.statuses == {"a": "IN_PROGRESS"}, str(fault)
        run.terminate()


def test_a_report_that_asks_for_the_next_task_loses_neither(kind, faults: FaultInjector, client, clock):
    register_definitions(definition(step("a", inputs=SECRET_INPUT), name="order"))
    start()
    task = json.loads(client.get("/api/tasks/poll/a?workerid=w").content)
    for fault in faults.at_each_call(kind):
        other = start()
        body = {name: task[name] for name in ("workflowInstanceId", "taskId")} | {
            "status": "COMPLETED",
            "workerId": "w",
        }
        send = partial(client.post, "/api/tasks/update-v2", body, content_type="application/json")

        following = repeat_request(fault, clock, send)

        assert RunView(task["workflowInstanceId"]).status == "COMPLETED", str(fault)
        assert (following["workflowInstanceId"], other.statuses) == (other.id, {"a": "IN_PROGRESS"}), str(fault)
        task = following


def test_a_run_is_terminated(kind, faults: FaultInjector, clock):
    register_definitions(definition(step("a"), name="child"), definition(sub_workflow("s", "child"), name="order"))
    for fault in faults.at_each_call(kind):
        run = start()

        repeat(fault, partial(control.terminate_run, run.id, ACTOR, "enough"))
        sweep_until(lambda run=run: run.child("s").status == "TERMINATED", clock)

        states = (run.status, run.reason, run.child("s").status)
        assert states == ("TERMINATED", "enough", "TERMINATED"), str(fault)


def test_a_run_is_retried(kind, faults: FaultInjector, clock):
    register_definitions(definition(step("a", inputs=SECRET_INPUT), name="order"))
    run = start()
    for tries, fault in enumerate(faults.at_each_call(kind), 1):
        task_commands.report_task(run.id, run.task("a").id, Report("FAILED"), ACTOR)

        repeat(fault, partial(run_commands_repair.retry, run.id, ACTOR))

        assert (run.status, run.attempts("a")) == ("RUNNING", [*["FAILED"] * tries, "SCHEDULED"]), str(fault)


def test_a_due_timer_is_handled_by_a_later_sweep(kind, faults: FaultInjector, clock):
    steps = wait("w", duration="10 seconds"), step("a", inputs=SECRET_INPUT)
    register_definitions(definition(*steps, name="order"))
    for fault in faults.at_each_call(kind):
        run = start()
        clock.advance(seconds=10)

        repeat(fault, sweeps.sweep_once)
        sweep_until(lambda run=run: "a" in run.statuses, clock)

        assert run.statuses == {"w": "COMPLETED", "a": "SCHEDULED"}, str(fault)


def test_a_message_is_delivered_by_a_later_sweep(kind, faults: FaultInjector, clock):
    parent = definition(sub_workflow("s", "child"), step("b", inputs={"all": "${s.output}"}), name="order")
    register_definitions(definition(step("a"), name="child"), parent)
    for fault in faults.at_each_call(kind):
        run = start()

        repeat(fault, report(run.child("s"), "a", {"text": LARGE}))
        sweep_until(lambda run=run: "b" in run.statuses, clock)

        assert run.statuses == {"s": "COMPLETED", "b": "SCHEDULED"}, str(fault)


def test_a_script_is_evaluated(kind, faults: FaultInjector, clock):
    steps = step("a"), jq("j", ".n + 1", inputs={"n": "${a.output.n}"}), step("b")
    register_definitions(definition(*steps, name="order"))
    for fault in faults.at_each_call(kind):
        run = start()

        repeat(fault, report(run, "a", {"n": 1}))

        assert run.statuses == {"a": "COMPLETED", "j": "COMPLETED", "b": "SCHEDULED"}, str(fault)
        assert run.task("j").output["result"] == 2, str(fault)
