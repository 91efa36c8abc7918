"""The calls behind the buttons of pages: a prompt is tried, and a connection tested."""

import pytest

from conductor_app.engine.ai.integration_settings import model_settings
from conductor_app.engine.ai.trials import PromptTrial, TrialFailed
from conductor_app.models import ModelCall
from conductor_app.workers.ai import connection_test, prompt_test
from tests.recording_web_server import json_answer
from tests.workers.ai.model_server import CHAT, MESSAGES, bodies, refused, said, wrote

pytestmark = pytest.mark.django_db


def listed(*names: str):
    """Return a list of models."""
    return json_answer({"object": "list", "has_more": False, "data": [{"id": name, "type": "model"} for name in names]})


def trial(integration="openai", **fields) -> PromptTrial:
    return PromptTrial("Greet ${name}.", {"name": "Ada"}, model_settings(integration, "small"), **fields)


def test_a_prompt_is_tried_with_its_variables(server):
    server.answers[CHAT] = said("Hello Ada")
    asked = trial(temperature=0.1, stop_words=["END"])

    assert prompt_test.test_prompt(asked) == "Hello Ada"

    [body] = bodies(server)
    assert body["messages"][0]["content"] == "Greet Ada."
    assert (body["temperature"], body["stop"]) == (0.1, ["END"])
    assert (asked.prompt_tokens, asked.completion_tokens) == (12, 5)
    assert not ModelCall.objects.exists()


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
    server.answers["/v1/models"] = listed("small", "large")

    found = connection_test.test_connection(model_settings(integration, "small"))

    assert found == "The provider offers 2 models: large, small."
    assert [asked["method"] for asked in server.asked] == ["GET"]


def test_a_connection_that_fails_says_why(server):
    server.answers["/v1/models"] = refused(403, "no access")

    with pytest.raises(TrialFailed, match="status 403: no access"):
        connection_test.test_connection(model_settings("openai", "small"))
