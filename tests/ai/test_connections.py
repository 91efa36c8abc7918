"""A thread that waits for a model holds no database connection."""

import pytest
from django.db import connection

from conductor_app.system_tasks.registry import run_built_in_workers, slow_queues
from tests.ai.conftest import ai_step, chat
from tests.ai.model_server import chat_answer
from tests.scenario import Scenario


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("step", [chat(userInput="x"), ai_step("LIST_MCP_TOOLS", mcpServer="http://127.0.0.1:9/")])
def test_no_connection_is_held_during_a_call(server, clock, monkeypatch, step):
    from conductor_app.ai.workers import mcp_client, openai_client

    seen = []

    def observed(call):
        def observe(*args, **options):
            seen.append(connection.connection is None or connection.vendor == "sqlite")
            return call(*args, **options)

        return observe

    monkeypatch.setattr(openai_client, "complete", observed(openai_client.complete))
    monkeypatch.setattr(mcp_client, "with_server", observed(mcp_client.with_server))
    server.answer_to = lambda path: chat_answer("ok")
    Scenario(clock, step)

    run_built_in_workers(queues=slow_queues())

    assert seen == [True]
