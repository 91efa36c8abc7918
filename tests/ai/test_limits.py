"""Limits of a call: its duration, the encoding of its reply, and the threads of a process."""

import gzip
from threading import BoundedSemaphore, Event

import pytest

from conductor_app.ai.models import ModelCall
from conductor_app.processes import background, jobs
from tests.ai.conftest import ai_step, chat
from tests.ai.model_server import CHAT, chat_answer
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db


@pytest.fixture
def slow(server, settings):
    """Return a server that does not answer before the end of the test, with a short limit."""
    settings.CONDUCTOR_AI_TASK_SECONDS = 0.2
    ended = Event()
    server.answer_to = lambda path: (ended.wait(10), chat_answer("late"))[1]
    yield server
    ended.set()


def test_a_call_takes_at_most_its_time(slow, run):
    scenario = run({**chat(userInput="x"), "retryCount": 0})

    assert "openai did not reply within AI_TASK_SECONDS (0.2 s)" in scenario.task("ask").reason
    assert ModelCall.objects.get().status == "FAILED"


def test_a_session_with_an_mcp_server_takes_at_most_its_time(slow, run):
    scenario = run({**ai_step("LIST_MCP_TOOLS", mcpServer=f"{slow.url}/mcp"), "retryCount": 0})

    assert "did not reply within AI_TASK_SECONDS (0.2 s)" in scenario.task("ask").reason


def test_a_server_that_does_not_finish_its_reply_is_cut_off(server, run, settings):
    settings.CONDUCTOR_AI_TASK_SECONDS = 0.3
    # The rest of the body never arrives.
    server.answers[CHAT] = 200, {"content-type": "application/json", "content-length": "1000"}, b"{"

    scenario = run({**chat(userInput="x"), "retryCount": 0})

    assert "AI_TASK_SECONDS" in scenario.task("ask").reason


def test_a_compressed_reply_is_refused_because_it_could_grow_without_limit(server, run):
    status, headers, body = chat_answer("x")
    server.answers[CHAT] = status, {**headers, "content-encoding": "gzip"}, gzip.compress(body)

    scenario = run({**chat(userInput="x"), "retryCount": 0})

    assert "is compressed or not readable" in scenario.task("ask").reason
    assert server.asked[0]["headers"]["Accept-Encoding"] == "identity"


def test_ai_tasks_are_executed_by_a_job_of_their_own(server, clock):
    server.answers[CHAT] = chat_answer("ok")
    scenario = Scenario(clock, chat(userInput="x"))

    with run_commit_hooks():
        background.execute_ai_tasks()

    assert scenario.status == "COMPLETED"


def test_a_process_with_the_maximum_number_of_threads_starts_no_further_one(server, clock, monkeypatch):
    taken = BoundedSemaphore(1)
    taken.acquire()
    monkeypatch.setattr(background, "_calling_models", taken)
    scenario = Scenario(clock, chat(userInput="x"))

    with run_commit_hooks():
        background.execute_ai_tasks()

    assert (scenario.statuses, server.asked) == ({"ask": "SCHEDULED"}, [])


def test_the_ordinary_workers_leave_ai_tasks_alone(server, clock):
    scenario = Scenario(clock, chat(userInput="x"))

    with run_commit_hooks():
        jobs.work()

    assert scenario.statuses == {"ask": "SCHEDULED"}


def test_due_ai_tasks_start_their_own_job(clock):
    from conductor_app.runs.store import due_rows

    assert due_rows.due_jobs(clock.now(), ("HTTP",), ("LLM_CHAT_COMPLETE",)) == []
    Scenario(clock, chat(userInput="x"))

    assert due_rows.due_jobs(clock.now(), ("HTTP",), ("LLM_CHAT_COMPLETE",)) == ["call_models"]
    assert due_rows.due_jobs(clock.now(), ("HTTP",)) == []
