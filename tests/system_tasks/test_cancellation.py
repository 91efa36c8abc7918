"""The work of built-in tasks ends early when their task is canceled."""

import sqlite3
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import anyio
import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from mcp.server import MCPServer

from conductor_app.ai.workers.mcp_client import list_tools, with_server
from conductor_app.ai.workers.messages import CallFailed
from conductor_app.runs.models import Attempt
from conductor_app.system_tasks import cancellation, registry
from conductor_app.system_tasks.cancellation import CANCELED, CANCELLATIONS, Cancellation
from tests.ai.conftest import ai_step, chat
from tests.ai.test_mcp import running_mcp_server
from tests.api_fixtures import Api
from tests.builders import step
from tests.clients.wait_until import eventually
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import Scenario
from tests.system_tasks.test_jdbc import postgresql_url

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def hanging(settings) -> Iterator[Any]:
    """Yield a web server that replies to no request until the end of the test."""
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    released = Event()
    with running_web_server() as server:

        def hang(path: str) -> Any:
            released.wait()
            return json_answer({})

        server.answer_to = hang
        yield server
        released.set()


def execute(api: Api, step: dict[str, Any], has_begun: Callable[[], Any], act: Callable[[str], Any]) -> list[bool]:
    """Start a run of a built-in step, and call `act` with its id when the step's work has begun.

    Returns what the worker says of its report when its thread has ended: False if there was none.
    """
    api.define(step)
    run, reported = api.start(), list[bool]()

    def work() -> None:
        [attempt] = registry.claim_one(step["type"])
        reported.append(registry.run_attempt(attempt))
        connections.close_all()

    thread = Thread(target=work, daemon=True)
    thread.start()
    eventually(has_begun)
    act(run)
    thread.join(25)
    assert not thread.is_alive()
    return reported


def terminate(api: Api) -> Callable[[str], None]:
    def act(run: str) -> None:
        assert api.delete(f"/workflow/{run}").status_code == 200

    return act


def watch_ahead() -> None:
    """Let the next look be at all attempts, however short their execution is."""
    for executed in list(CANCELLATIONS.value._executed.values()):
        CANCELLATIONS.value._executed[executed.attempt.id] = executed._replace(began_at=0)


def statuses() -> list[str]:
    return list(Attempt.objects.values_list("status", flat=True))


def http_step(url: str) -> dict[str, Any]:
    request = {"uri": url, "method": "GET", "readTimeOut": 0}
    return {"name": "call", "taskReferenceName": "call", "type": "HTTP", "inputParameters": {"http_request": request}}


def test_the_request_of_a_canceled_http_task_ends(api, hanging):
    reported = execute(api, http_step(f"{hanging.url}/slow"), lambda: hanging.asked, terminate(api))

    assert reported == [False]
    assert statuses() == ["CANCELED"]


def test_the_request_of_a_removed_http_task_ends(api, hanging):
    def remove(run: str) -> None:
        Attempt.objects.filter(run_id=run).delete()

    assert execute(api, http_step(f"{hanging.url}/slow"), lambda: hanging.asked, remove) == [False]


def test_the_statement_of_a_canceled_sql_task_ends(api, settings, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as made:
        made.execute("CREATE TABLE item (id INTEGER)")
    settings.CONDUCTOR_SQL_TASK_CONNECTIONS = {"shop": f"sqlite://{tmp_path / 'shop.db'}"}
    inputs = {"connectionId": "shop", "statement": ENDLESS}
    step = {"name": "sum", "taskReferenceName": "sum", "type": "JDBC", "inputParameters": inputs}

    reported = execute(api, step, lambda: CANCELLATIONS.value._executed, terminate(api))

    assert reported == [False]
    assert statuses() == ["CANCELED"]


def test_postgresql_cancels_the_statement_of_a_canceled_sql_task(api, settings):
    if connection.vendor != "postgresql":
        pytest.skip("there is no PostgreSQL in this profile")
    settings.CONDUCTOR_SQL_TASK_CONNECTIONS = {"shop": postgresql_url()}
    inputs = {"connectionId": "shop", "statement": "SELECT pg_sleep(25)"}
    step = {"name": "sum", "taskReferenceName": "sum", "type": "JDBC", "inputParameters": inputs}

    def sleeping() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'conductor SQL task' "
                "AND datname = current_database() AND state = 'active' AND query LIKE '%%pg_sleep%%'"
            )
            return int(cursor.fetchone()[0])

    reported = execute(api, step, sleeping, terminate(api))

    assert reported == [False]
    eventually(lambda: sleeping() == 0)


def test_the_call_of_a_canceled_model_task_ends(api, hanging, settings):
    settings.CONDUCTOR_AI_OPENAI_API_KEY = "sk-4711"
    settings.CONDUCTOR_AI_OPENAI_BASE_URL = f"{hanging.url}/v1"
    step = chat(messages=[{"role": "user", "message": "Hello"}])

    reported = execute(api, step, lambda: hanging.asked, terminate(api))

    assert reported == [False]
    assert statuses() == ["CANCELED"]


def test_the_session_of_a_canceled_mcp_task_ends(api, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    called, tools = Event(), MCPServer("slow")

    @tools.tool()
    async def sleep() -> str:
        called.set()
        await anyio.sleep(20)
        return "slept"

    with running_mcp_server(tools.streamable_http_app()) as url:
        step = ai_step("CALL_MCP_TOOL", mcpServer=url, method="sleep")
        reported = execute(api, step, called.is_set, terminate(api))

    assert reported == [False]
    assert statuses() == ["CANCELED"]


def test_the_session_of_an_mcp_task_that_was_canceled_before_ends_at_once(api, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    api.define(ai_step("LIST_MCP_TOOLS", mcpServer="http://127.0.0.1:9/"))
    api.start()
    [attempt] = registry.claim_one("LIST_MCP_TOOLS")
    failed: list[str] = []

    def work() -> None:
        with CANCELLATIONS.value.watching(attempt) as watched, pytest.raises(CallFailed) as error:
            watched.cancel()
            with_server("http://127.0.0.1:9/", {}, 20, list_tools)
        failed.append(str(error.value))
        connections.close_all()

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)

    assert failed == [CANCELED]


def test_a_task_that_goes_on_is_not_canceled(api, hanging):
    looked = Event()

    def answer(path: str) -> Any:
        looked.wait()
        return json_answer({})

    hanging.answer_to = answer

    def look(run: str) -> None:
        watch_ahead()
        CANCELLATIONS.value.look()
        looked.set()

    assert execute(api, http_step(f"{hanging.url}/a"), lambda: hanging.asked, look) == [True]
    assert statuses() == ["COMPLETED"]


def test_a_task_that_ends_at_once_costs_no_statement(api, monkeypatch):
    monkeypatch.setattr(cancellation, "CHECK_SECONDS", 3600)
    api.define(http_step("not an address"))
    api.start()
    [attempt] = registry.claim_one("HTTP")

    with CaptureQueriesContext(connection) as counted, CANCELLATIONS.value.watching(attempt):
        CANCELLATIONS.value.look()

    assert not counted.captured_queries


@pytest.mark.django_db
def test_a_task_that_no_other_connection_sees_is_not_canceled(clock):
    Scenario(clock, step("HTTP"))
    [attempt] = registry.claim_one("HTTP")

    with CANCELLATIONS.value.watching(attempt) as watched:
        watch_ahead()
        thread = Thread(target=CANCELLATIONS.value.look)
        thread.start()
        thread.join()

    assert not watched.is_canceled


def test_what_a_canceled_exchange_does_next_ends_at_once():
    stopped: list[str] = []
    canceled = Cancellation()

    with canceled.stopping_by(lambda: stopped.append("first")):
        with canceled.stopping_by(lambda: stopped.append("second")):
            canceled.cancel()
        with canceled.stopping_by(lambda: stopped.append("third")):
            pass
    with canceled.stopping_by(lambda: 1 / 0):
        stopped.append("end")

    assert stopped == ["second", "first", "third", "end"]
