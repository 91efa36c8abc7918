"""A worker is killed around a paid call: a reply that has arrived is used, and a lost call is repeated once."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
import requests
from conductor.client.http.models.task_def import TaskDef
from conductor.client.orkes_clients import OrkesClients

from examples.demo import agent
from examples.demo.agent_model import running_model, running_tools
from examples.demo.server import configuration_for
from qa.faults.history import History
from qa.faults.servers_under_test import EmbeddedServer
from tests.ai.model_server import CHAT, chat_answer, headers
from tests.qa.test_faults import IS_ON_POSTGRESQL
from tests.recording_web_server import running_web_server

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IS_ON_POSTGRESQL, reason="The embedded profile has SQLite.")]
SECONDS = 60.0


class ServerWithModel(EmbeddedServer):
    """A server whose integration `openai` is a server of this test."""

    model_url = ""

    def environment(self, role: str, **extra: str) -> dict[str, str]:
        model = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": self.model_url}
        # An access key would be required otherwise.
        return super().environment(role, **extra) | model | {"CONDUCTOR_API_ACCESS": "open"}


@contextmanager
def server_with(model_url: str, folder: Path):
    """Yield a server that calls this model."""
    folder.chmod(0o755)
    server = ServerWithModel(folder, History(), "")
    server.model_url = model_url
    try:
        server.start()
        yield server
    finally:
        server.close()
        server.disk.close()


def register_short_lease(clients: OrkesClients) -> None:
    """Let a lost attempt be claimed again after two seconds."""
    task = TaskDef(name="llm_chat_complete", retry_count=0, response_timeout_seconds=2, timeout_seconds=0)
    clients.get_metadata_client().register_task_def(task)


def test_an_agent_survives_the_kill_of_its_worker_without_a_second_payment(tmp_path):
    said_lines: list[str] = []
    with running_model() as model, running_tools() as tools, server_with(model.url, tmp_path) as server:
        clients = OrkesClients(configuration_for(server.urls[0]))
        register_short_lease(clients)
        agent.agent_workflow(clients, "openai").register(overwrite=True)
        # The worker dies when it has the model's first reply and has not reported it.
        (tmp_path / "points" / "work-performed").write_text(str(int(signal.SIGKILL)))

        run_id = agent.start_agent(clients, tools.url)
        answer = agent.watch_agent(clients, run_id, said_lines.append, lambda question: True)

    assert answer == "Order A-1004 is refunded: 42.00 EUR."
    assert list((tmp_path / "points").glob("work-performed.taken.*"))
    assert len(model.requests) == 3, "the model is asked once per round, although the worker was killed"
    assert tools.refunds == {"A-1004": 42.0}
    assert said_lines[0] == "  The model calls look_up_order (51 tokens)."


def test_an_agent_whose_refund_is_refused_says_so(tmp_path):
    with running_model() as model, running_tools() as tools, server_with(model.url, tmp_path) as server:
        clients = OrkesClients(configuration_for(server.urls[0]))
        agent.agent_workflow(clients, "openai").register(overwrite=True)

        run_id = agent.start_agent(clients, tools.url)
        answer = agent.watch_agent(clients, run_id, lambda line: None, lambda question: False)

    assert answer == "Order A-1004 was not refunded, because the refund was refused."
    assert tools.refunds == {}


@pytest.mark.parametrize(("repeats", "status", "calls"), [(True, "COMPLETED", 2), (False, "FAILED", 1)])
def test_a_call_that_was_open_when_its_worker_was_killed(tmp_path, repeats, status, calls):
    with running_web_server() as model, server_with(f"{model.url}/v1", tmp_path) as server:
        clients = OrkesClients(configuration_for(server.urls[0]))
        register_short_lease(clients)
        asked, go_on = hold_first_answer(model)
        run_id = start_chat(server.urls[0], repeats)
        assert asked.wait(SECONDS)

        [worker] = server.targets()["worker"]()
        os.kill(worker, signal.SIGKILL)
        go_on.set()
        run = wait_for_end(server.urls[0], run_id)

    assert (run["status"], len(model.asked)) == (status, calls)
    assert len(set(headers(model, "Idempotency-Key"))) == 1
    if not repeats:
        assert "the call may have been paid" in run["reasonForIncompletion"]


def hold_first_answer(model) -> tuple[Event, Event]:
    """Let the model answer its first request only when the second event is set. The first says that it was asked."""
    asked, go_on = Event(), Event()

    def answer_to(path: str):
        if not asked.is_set():
            asked.set()
            go_on.wait(SECONDS)
        return chat_answer("ok")

    model.answers[CHAT] = chat_answer("ok")
    model.answer_to = answer_to
    return asked, go_on


def start_chat(url: str, repeats: bool) -> str:
    """Register and start a workflow with one chat, and return its id."""
    inputs = {"llmProvider": "openai", "model": "small", "userInput": "x", "repeatLostCalls": repeats}
    step = {"name": "llm_chat_complete", "taskReferenceName": "ask", "type": "LLM_CHAT_COMPLETE"}
    document = {
        "name": "chat",
        "version": 1,
        "ownerEmail": "a@example.org",
        "timeoutSeconds": 0,
        "tasks": [{**step, "inputParameters": inputs}],
    }
    requests.post(f"{url}/api/metadata/workflow", json=document, timeout=10).raise_for_status()
    return requests.post(f"{url}/api/workflow/chat", json={}, timeout=10).text


def wait_for_end(url: str, run_id: str) -> dict:
    """Return the run when it has ended."""
    ends_at = time.monotonic() + SECONDS
    while time.monotonic() < ends_at:
        run = requests.get(f"{url}/api/workflow/{run_id}", timeout=10).json()
        if run["status"] != "RUNNING":
            return run
        time.sleep(0.1)
    raise AssertionError(f"the run is still {run['status']}")
