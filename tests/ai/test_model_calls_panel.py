"""The calls of models in the panel of a task."""

import pytest

from conductor_app.ai.models import ModelCall
from conductor_app.runs.models import Run
from conductor_app.system_tasks.registry import run_built_in_workers, slow_queues
from tests.ai.conftest import chat
from tests.ai.model_server import CHAT, chat_answer
from tests.page_text import page_text, run_url
from tests.recording_web_server import running_web_server
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(clock, settings):
    """Return a run with a completed chat task."""
    with running_web_server() as server:
        settings.CONDUCTOR_AI_OPENAI_API_KEY = "none"
        settings.CONDUCTOR_AI_OPENAI_BASE_URL = f"{server.url}/v1"
        server.answers[CHAT] = chat_answer("Blue.", tokens=(1200, 5))
        scenario = Scenario(clock, chat(userInput="x"))
        with run_commit_hooks():
            run_built_in_workers(queues=slow_queues())
    return Run.objects.get(pk=scenario.id)


def panel(client, run) -> str:
    return page_text(client.get(run_url(run, task="ask")))


def test_the_panel_shows_model_tokens_duration_and_finish_reason(operator, run):
    ModelCall.objects.update(ended_at=ModelCall.objects.get().started_at + 3_200)

    shown = panel(operator, run)

    assert "Model calls Model openai:small Status Replied Tokens 1,200 sent, 5 received" in shown
    assert "Duration 3.2 s Finish reason STOP" in shown


def test_a_cost_is_shown_in_the_currency(operator, run):
    ModelCall.objects.update(cost=120_000)

    assert "0.12" in panel(operator, run)


def test_a_lost_call_says_that_it_may_have_been_paid(operator, run):
    ModelCall.objects.update(status="LOST")

    shown = panel(operator, run)

    assert "Status Reply lost" in shown
    assert "This call may have been paid in addition." in shown


def test_a_stored_reply_that_was_used_says_so(operator, run, clock):
    ModelCall.objects.update(reused_at=clock.now())

    assert "The stored reply was used after the process had ended. It was paid once." in panel(operator, run)


def test_the_error_of_a_failed_call_is_escaped(operator, run):
    ModelCall.objects.update(status="FAILED", error="<b>busy</b>")

    assert "<b>busy</b>" in panel(operator, run)


def test_the_calls_take_one_statement_and_only_for_ai_tasks(operator, run):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as seen:
        panel(operator, run)

    of_attempt = [query for query in seen if 'WHERE "conductor_modelcall"."attempt_id"' in query["sql"]]
    assert len(of_attempt) == 1
