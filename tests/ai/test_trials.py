"""The calls behind the buttons of pages: a prompt is tried, and a connection tested."""

import pytest

from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.ai.commands.calls import Estimate, lose_abandoned_calls
from conductor_app.ai.commands.integrations import model_settings
from conductor_app.ai.commands.prompts import PromptTrial, TrialFailed, begin_trial
from conductor_app.ai.models import ModelCall, ModelUsage
from conductor_app.ai.workers import trials as connection_test
from conductor_app.ai.workers import trials as prompt_test
from conductor_app.ai.workers.trials import try_prompt
from conductor_app.core.errors import Conflict
from tests.ai.model_server import CHAT, MESSAGES, bodies, chat_answer, refused, wrote
from tests.recording_web_server import json_answer

pytestmark = pytest.mark.django_db


def model_list(*names: str):
    """Return a list of models."""
    return json_answer({"object": "list", "has_more": False, "data": [{"id": name, "type": "model"} for name in names]})


def trial(integration="openai", **fields) -> PromptTrial:
    return PromptTrial("Greet ${name}.", {"name": "Ada"}, model_settings(integration, "small"), **fields)


def test_a_prompt_is_tried_with_its_variables(server):
    server.answers[CHAT] = chat_answer("Hello Ada")
    asked = trial(temperature=0.1, stop_words=["END"])

    assert prompt_test.test_prompt(asked) == "Hello Ada"

    [body] = bodies(server)
    assert body["messages"][0]["content"] == "Greet Ada."
    assert (body["temperature"], body["stop"]) == (0.1, ["END"])
    assert (asked.prompt_tokens, asked.completion_tokens) == (12, 5)


def test_a_trial_counts_as_a_call_of_its_user_outside_of_runs(server):
    server.answers[CHAT] = chat_answer("Hello Ada")
    try_prompt(trial(name="greeting"), "olga")

    call = ModelCall.objects.get()
    assert (call.status, call.caller, call.run_id, call.definition, call.prompt) == (
        *("REPLIED", "olga", ""),
        *("", "greeting"),
    )
    assert (call.prompt_tokens, call.completion_tokens, call.reply) == (12, 5, None)
    [row] = ModelUsage.objects.all()
    assert (row.caller, row.definition, row.calls, row.prompt_tokens) == ("olga", "", 1, 12)


def test_a_failed_trial_counts_as_a_failure(server):
    server.answers[CHAT] = refused(401, "wrong key sk-the-key-of-openai")

    with pytest.raises(TrialFailed):
        try_prompt(trial(), "olga")

    call = ModelCall.objects.get()
    assert (call.status, "sk-the-key" in call.error) == ("FAILED", False)
    assert ModelUsage.objects.get().failures == 1


@pytest.mark.parametrize(
    ("scope", "name"), [("ALL", ""), ("CALLER", "olga"), ("INTEGRATION", "openai"), ("MODEL", "openai:small")]
)
def test_a_spent_budget_refuses_a_trial(server, scope, name):
    save_budget(BudgetLimits(scope, name, "DAY", max_tokens=17), "otto")
    server.answers[CHAT] = chat_answer("Hello Ada")
    try_prompt(trial(), "olga")

    with pytest.raises(Conflict, match=r"is spent: 17 tokens of 17 tokens\. Raise the budget"):
        try_prompt(trial(), "olga")
    assert len(server.asked) == 1


def test_a_budget_of_workflows_and_runs_does_not_refuse_a_trial(server):
    save_budget(BudgetLimits("DEFINITION", "w", "DAY", max_tokens=0), "otto")
    save_budget(BudgetLimits("RUN", "", "RUN", max_tokens=0), "otto")
    server.answers[CHAT] = chat_answer("Hello Ada")

    assert try_prompt(trial(), "olga").text == "Hello Ada"


def test_a_trial_does_not_wait_for_open_calls(server, clock):
    save_budget(BudgetLimits("ALL", "", "DAY", max_tokens=10_000), "otto")
    begin_trial(trial(by="ann"), Estimate(tokens=9_000))

    with pytest.raises(Conflict, match=r"0 tokens of 10,000 tokens are spent, and 9,000 tokens reserved\. Try again"):
        try_prompt(trial(), "olga")


def test_a_trial_whose_process_has_ended_is_lost(server, clock, settings):
    settings.CONDUCTOR_AI_TASK_SECONDS = 600
    begin_trial(trial(by="ann"), Estimate(tokens=9_000))
    clock.advance(seconds=1_199)
    assert lose_abandoned_calls(10) == 0

    clock.advance(seconds=2)

    assert lose_abandoned_calls(10) == 1
    assert ModelCall.objects.get().status == "LOST"
    assert ModelUsage.objects.get().failures == 1


def test_a_prompt_is_tried_at_anthropic(server):
    server.answers[MESSAGES] = wrote({"type": "text", "text": "Hello Ada"})

    assert prompt_test.test_prompt(trial("anthropic")) == "Hello Ada"


def test_a_refused_trial_says_why_without_the_key(server):
    server.answers[CHAT] = refused(401, "wrong key sk-the-key-of-openai")

    with pytest.raises(
        TrialFailed, match=r"^The model could not be called: openai replied with status 401: wrong key \*\*\*\.$"
    ):
        prompt_test.test_prompt(trial())


@pytest.mark.parametrize("integration", ["openai", "anthropic"])
def test_a_connection_test_names_the_models(server, integration):
    server.answers["/v1/models"] = model_list("small", "large")

    found = connection_test.test_connection(model_settings(integration, "small"))

    assert found == "The provider offers 2 models: large, small."
    assert [asked["method"] for asked in server.asked] == ["GET"]


def test_a_connection_that_fails_says_why(server):
    server.answers["/v1/models"] = refused(403, "no access")

    with pytest.raises(TrialFailed, match="status 403: no access"):
        connection_test.test_connection(model_settings("openai", "small"))
