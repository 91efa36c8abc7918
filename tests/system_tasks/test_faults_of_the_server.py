"""Faults of this server during the work of built-in workers: the work is delayed, and done once."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError

from conductor_app.access import secrets as secret_cache
from conductor_app.access.commands import secrets as secrets_and_variables
from conductor_app.ai.models import ModelCall
from conductor_app.ai.workers import calls as streamed_log
from conductor_app.ai.workers import tasks as chat_tasks
from conductor_app.ai.workers import trials as providers
from conductor_app.events.sinks import PROVIDERS
from conductor_app.system_tasks import registry
from conductor_app.system_tasks.registry import BuiltInWorker, workers
from tests.ai.conftest import chat
from tests.ai.model_server import CHAT, chat_answer, chunks
from tests.builders import event
from tests.fault_injection import ERRORS, Fault
from tests.free_port import free_port
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db(transaction=True)
MAX_ROUNDS = 8


@pytest.fixture
def web(settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        server.answers["/pay"] = json_answer({"paid": True})
        settings.CONDUCTOR_AI_OPENAI_API_KEY = "sk-the-key"
        settings.CONDUCTOR_AI_OPENAI_BASE_URL = f"{server.url}/v1"
        server.answers[CHAT] = chat_answer("Blue.")
        yield server


@pytest.fixture
def broker(monkeypatch):
    """Return the messages that the broker `redis` has accepted."""
    sent = []
    monkeypatch.setattr(PROVIDERS["redis"], "publish", lambda queue, id, payload: sent.append(id))
    return sent


def http_step(server, **fields):
    request = {"uri": f"{server.url}/pay", "method": "POST", "headers": {"A": "${workflow.secrets.TOKEN}"}, "body": {}}
    step = {"name": "call", "taskReferenceName": "call", "type": "HTTP", "inputParameters": {"http_request": request}}
    return {**step, **fields}


def work() -> None:
    with run_commit_hooks():
        registry.run_built_in_workers()


def work_until_ended(scenario: Scenario, fault: Fault) -> None:
    """Work once with the fault, and then without it, until the run has ended."""
    secret_cache.clear_secret_cache()
    with fault:
        work()
    for _ in range(MAX_ROUNDS):
        if scenario.status != "RUNNING":
            break
        scenario.later(61)
        work()
    assert scenario.status == "COMPLETED", (str(fault), scenario.reason, scenario.statuses)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_http_task_sends_its_request_once_whatever_call_of_the_server_fails(faults, web, clock, kind):
    secrets_and_variables.put_secret("TOKEN", "a-long-secret-value", "t")
    for fault in faults.at_each_call(kind):
        web.asked.clear()
        scenario = Scenario(clock, http_step(web))

        work_until_ended(scenario, fault)

        assert len(web.asked) == 1, str(fault)


@pytest.mark.parametrize("kind", ERRORS)
def test_a_reply_of_a_model_is_paid_once_whatever_call_of_the_server_fails(faults, web, clock, kind):
    for fault in faults.at_each_call(kind):
        web.asked.clear()
        scenario = Scenario(clock, chat(userInput="x"))

        work_until_ended(scenario, fault)

        assert len(web.asked) == 1, str(fault)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_event_task_is_published_whatever_call_of_the_server_fails(faults, broker, clock, kind):
    for fault in faults.at_each_call(kind):
        broker.clear()
        scenario = Scenario(clock, event("tell", "redis:told"))

        work_until_ended(scenario, fault)

        assert broker == [scenario.task("tell").id], str(fault)


@contextmanager
def no_free_files() -> Iterator[None]:
    """Let this process open no file, even where another thread closes one meanwhile.

    Only the numbers of the standard streams, which are open, stay below the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def fail_when_files_are_exhausted(worker: BuiltInWorker):
    """Return `work_on` of a worker, which has no free files at its first call."""
    work_on, calls = worker.work_on, []

    def works_on(attempt):
        calls.append(attempt)
        if len(calls) > 1:
            return work_on(attempt)
        with no_free_files():
            return work_on(attempt)

    return works_on


def test_a_server_with_too_many_open_files_puts_its_http_task_back(web, clock, monkeypatch):
    monkeypatch.setattr(workers()["HTTP"], "work_on", fail_when_files_are_exhausted(workers()["HTTP"]))
    scenario = Scenario(clock, http_step(web))

    work()

    waiting = scenario.task("call")
    assert (waiting.status, waiting.callback_ms, web.asked) == ("PENDING", 1000, [])
    assert "The server has too many open files." in waiting.reason
    scenario.later(2)
    work()
    assert scenario.status == "COMPLETED"


def test_a_server_with_too_many_open_files_pays_a_model_once(web, clock, monkeypatch):
    send = providers.complete

    def complete(*args):
        if ModelCall.objects.count() > 1:
            return send(*args)
        with no_free_files():
            return send(*args)

    monkeypatch.setattr(chat_tasks, "complete", complete)
    scenario = Scenario(clock, chat(userInput="x", repeatLostCalls=False))

    work()
    assert "The server has too many open files." in scenario.task("ask").reason
    scenario.later(2)
    work()

    assert (scenario.status, len(web.asked)) == ("COMPLETED", 1)
    assert list(ModelCall.objects.order_by("started_at").values_list("status", flat=True)) == ["FAILED", "REPLIED"]


def test_a_host_that_refuses_the_connection_is_a_result_of_the_task(web, clock):
    step = http_step(web)
    step["inputParameters"]["http_request"]["uri"] = f"http://127.0.0.1:{free_port()}/"
    scenario = Scenario(clock, step)

    work()

    assert scenario.statuses == {"call": "FAILED"}


def refuse_reports(monkeypatch, count: int) -> None:
    """Let the next reports meet a database that is away."""
    report, failures = registry.report_task, [OperationalError("server closed the connection")] * count

    def report_task(*args, **options):
        if failures:
            raise failures.pop()
        return report(*args, **options)

    monkeypatch.setattr(registry, "report_task", report_task)


def test_a_result_that_cannot_be_stored_is_reported_later_without_another_request(web, clock, monkeypatch):
    scenario = Scenario(clock, http_step(web))
    refuse_reports(monkeypatch, 4)

    work()
    work()
    assert scenario.statuses == {"call": "IN_PROGRESS"}
    for _ in range(3):
        clock.advance(seconds=8)
        work()

    assert (scenario.status, len(web.asked)) == ("COMPLETED", 1)


def test_a_process_that_stops_reports_the_results_that_it_has_kept(web, clock, monkeypatch):
    scenario = Scenario(clock, http_step(web))
    refuse_reports(monkeypatch, 2)
    work()

    with run_commit_hooks():
        registry.release_unfinished()

    assert (scenario.status, len(web.asked)) == ("COMPLETED", 1)


def test_an_error_of_a_worker_itself_fails_its_task(web, clock, monkeypatch):
    monkeypatch.setattr(workers()["HTTP"], "work_on", lambda attempt: attempt.input["no such input"])
    scenario = Scenario(clock, http_step(web))

    work()

    assert scenario.statuses == {"call": "FAILED"}
    assert scenario.task("call").reason == "The built-in HTTP worker failed: KeyError."


def test_a_progress_that_cannot_be_logged_costs_no_reply(web, clock, monkeypatch):
    def add_logs(*_):
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(streamed_log, "add_logs", add_logs)
    web.answers[CHAT] = chunks({"content": "Bl"}, {"content": "ue."})
    scenario = Scenario(clock, chat(userInput="x", stream=True))

    work()

    assert (scenario.status, scenario.output["result"], len(web.asked)) == ("COMPLETED", "Blue.", 1)
