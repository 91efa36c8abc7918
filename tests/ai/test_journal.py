"""The journal of calls: a repeated attempt does not pay again, and a lost call is handled as the step says."""

import pytest

from conductor_app.ai.commands import calls as model_calls
from conductor_app.ai.commands.budgets import begin_call
from conductor_app.ai.commands.calls import Estimate
from conductor_app.ai.commands.integrations import model_settings
from conductor_app.ai.commands.prompts import save_prompt
from conductor_app.ai.models import ModelCall, ModelUsage
from conductor_app.runs.commands import control
from conductor_app.system_tasks import registry
from conductor_app.system_tasks.registry import workers
from conductor_app.tasks.commands.claims import claim_tasks
from tests.ai.conftest import chat, work
from tests.ai.model_server import CHAT, chat_answer, headers
from tests.builders import policy
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db


def claim():
    with run_commit_hooks():
        [attempt] = claim_tasks("LLM_CHAT_COMPLETE", worker=registry.WORKER_ID, wait_ms=0)
    return attempt


def test_a_reply_that_was_not_reported_is_used_by_the_next_claim(server, clock):
    server.answers[CHAT] = chat_answer("Blue.")
    scenario = Scenario(clock, chat(userInput="x"))
    # The process ends between the reply and the report.
    assert workers()["LLM_CHAT_COMPLETE"].work_on(claim()).output["result"] == "Blue."

    scenario.later(121)
    assert work() == 1

    assert (scenario.status, scenario.output["result"], len(server.asked)) == ("COMPLETED", "Blue.", 1)
    assert ModelCall.objects.get().reply is None


def lose_a_call(server, clock, **inputs) -> Scenario:
    """Start a run whose process ends while its call is open."""
    server.answers[CHAT] = chat_answer("Blue.")
    scenario = Scenario(clock, chat(userInput="x", **inputs))
    attempt = claim()
    key = model_calls.call_key(attempt, ["openai", "small", [attempt.input, ""]])
    begin_call(attempt, model_settings("openai", "small"), key, Estimate())
    scenario.later(121)
    return scenario


def test_a_lost_call_is_repeated_with_the_same_idempotency_key(server, clock):
    scenario = lose_a_call(server, clock)

    assert work() == 1

    lost, repeated = ModelCall.objects.order_by("started_at")
    assert (lost.status, repeated.status, scenario.status) == ("LOST", "REPLIED", "COMPLETED")
    assert headers(server, "Idempotency-Key") == [lost.request_key] == [repeated.request_key]


def test_a_lost_call_is_not_repeated_if_the_step_forbids_it(server, clock):
    scenario = lose_a_call(server, clock, repeatLostCalls=False)

    work()

    attempt = scenario.task("ask")
    assert (scenario.status, attempt.status, server.asked) == ("FAILED", "FAILED_FOR_GOOD", [])
    assert "the call may have been paid" in attempt.reason
    assert "Retry the task to call the model again." in attempt.reason
    assert ModelCall.objects.get().status == "LOST"


def test_a_person_may_retry_a_lost_call(server, clock):
    scenario = lose_a_call(server, clock, repeatLostCalls=False)
    work()

    scenario.retry()
    work()

    assert (scenario.status, len(server.asked)) == ("COMPLETED", 1)


def time_out_during_a_call(server, clock, **inputs) -> Scenario:
    """Start a run whose first attempt times out while its call is open; the retry is due."""
    server.answers[CHAT] = chat_answer("Blue.")
    definition = policy("ask", retries=1, timeout_seconds=60, timeout_policy="RETRY")
    scenario = Scenario(clock, {**chat(userInput="x", **inputs), "taskDefinition": definition})
    attempt = claim()
    key = model_calls.call_key(attempt, ["openai", "small", [attempt.input, ""]])
    begin_call(attempt, model_settings("openai", "small"), key, Estimate())
    scenario.later(60)
    return scenario


def test_a_retry_after_a_timeout_during_a_call_pays_again(server, clock):
    scenario = time_out_during_a_call(server, clock)

    work()

    assert (scenario.status, len(server.asked)) == ("COMPLETED", 1)


def test_a_retry_does_not_repeat_an_open_call_if_the_step_forbids_it(server, clock):
    scenario = time_out_during_a_call(server, clock, repeatLostCalls=False)
    work()
    assert (scenario.status, server.asked, ModelCall.objects.get().status) == ("FAILED", [], "LOST")

    scenario.retry()
    work()

    assert (scenario.status, len(server.asked)) == ("COMPLETED", 1)


def test_a_rerun_calls_again(server, clock):
    server.answers[CHAT] = chat_answer("Blue.")
    scenario = Scenario(clock, chat(userInput="x"))
    work()

    scenario.later(1)
    scenario.rerun("ask")
    work()

    assert (scenario.status, len(server.asked)) == ("COMPLETED", 2)
    assert len(set(headers(server, "Idempotency-Key"))) == 2


def timed_out_after_reply(server, clock, answer="Blue.", **inputs) -> Scenario:
    """Start a run whose first attempt gets a reply and times out before its report; the retry is due."""
    server.answers[CHAT] = [chat_answer(answer), chat_answer("Red.")]
    definition = policy("ask", retries=2, timeout_seconds=60, timeout_policy="RETRY")
    scenario = Scenario(clock, {**chat(userInput="x", **inputs), "taskDefinition": definition})
    workers()["LLM_CHAT_COMPLETE"].work_on(claim())
    scenario.later(60)
    assert scenario.attempts("ask") == ["TIMED_OUT", "SCHEDULED"]
    return scenario


def test_a_retry_after_a_timeout_uses_the_reply_of_the_earlier_attempt(server, clock):
    scenario = timed_out_after_reply(server, clock)

    assert work() == 1

    assert (scenario.status, scenario.output["result"], len(server.asked)) == ("COMPLETED", "Blue.", 1)
    call = ModelCall.objects.get()
    assert (call.reply, call.reused_at) == (None, clock.now())
    assert ModelUsage.objects.get().calls == 1


def test_a_retry_with_another_prompt_pays_again(server, clock):
    save_prompt("question", "What is ${what}?", "olga")
    scenario = timed_out_after_reply(server, clock, instructions="question")
    save_prompt("question", "Which colour is ${what}?", "olga")

    work()

    assert (scenario.output["result"], len(server.asked)) == ("Red.", 2)


def test_a_report_that_is_too_late_keeps_the_reply_for_the_retry(server, clock):
    server.answers[CHAT] = chat_answer("Blue.")
    definition = policy("ask", retries=1, timeout_seconds=60, timeout_policy="RETRY")
    scenario = Scenario(clock, {**chat(userInput="x"), "taskDefinition": definition})
    attempt = claim()
    scenario.later(60)

    with run_commit_hooks():
        assert not registry.run_attempt(attempt)
    work()

    assert (scenario.output["result"], len(server.asked)) == ("Blue.", 1)


def test_a_retry_after_a_refused_answer_pays_again(server, clock):
    scenario = timed_out_after_reply(server, clock, answer="not JSON", jsonOutput=True)
    server.answers[CHAT] = chat_answer('{"colour": "red"}')
    # The first retry uses the reply, refuses it, and discards it.
    assert work() == 2

    assert scenario.attempts("ask") == ["TIMED_OUT", "FAILED", "COMPLETED"]
    assert (scenario.output["result"], len(server.asked)) == ({"colour": "red"}, 2)


def test_the_same_request_of_another_task_pays(server, clock):
    server.answers[CHAT] = [chat_answer("Blue."), chat_answer("Red.")]
    scenario = Scenario(clock, chat("first", userInput="x"))
    workers()["LLM_CHAT_COMPLETE"].work_on(claim())
    other = Scenario(clock, chat("first", userInput="x"))

    workers()["LLM_CHAT_COMPLETE"].work_on(claim())

    assert scenario.id != other.id
    assert len(server.asked) == 2


def test_the_lease_is_renewed_as_long_as_a_call_is_open(server, clock, monkeypatch):
    from threading import Event

    from conductor_app.ai.workers import calls as lease_renewal

    renewed, seen = Event(), []

    def renew(run_id, attempt_id, by, worker=""):
        seen.append((run_id, attempt_id, worker))
        renewed.set()

    monkeypatch.setattr(lease_renewal, "renew_lease", renew)
    monkeypatch.setattr(lease_renewal.connections, "close_all", lambda: None)
    scenario = Scenario(clock, chat(userInput="x"))
    attempt = claim()
    attempt.lease_ms = 30

    with lease_renewal.renewed_lease(attempt):
        assert renewed.wait(5)

    assert seen[0] == (scenario.id, attempt.id, registry.WORKER_ID)


def test_unused_replies_are_deleted_when_their_attempts_have_ended(server, clock):
    server.answers[CHAT] = chat_answer("Blue.")
    scenario = Scenario(clock, chat(userInput="x"))
    workers()["LLM_CHAT_COMPLETE"].work_on(claim())
    clock.advance(seconds=2 * 86_400)
    assert model_calls.discard_unused_replies(100) == 0

    scenario.terminate()

    assert model_calls.discard_unused_replies(100) == 1
    assert ModelCall.objects.get().reply is None


def test_calls_are_deleted_with_their_run(server, clock):
    server.answers[CHAT] = chat_answer("Blue.")
    scenario = Scenario(clock, chat(userInput="x"))
    work()

    with run_commit_hooks():
        control.remove_run(scenario.id, "ann", archive=False)

    assert not ModelCall.objects.exists()
