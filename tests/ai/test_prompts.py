"""Prompts, as clients call them: versions, placeholders, bindings to models, and trials."""

import json

import pytest

from conductor_app.access.models import AuditEntry, Tag
from conductor_app.ai.commands.prompts import PromptRefused, prompt_text
from conductor_app.ai.models import Prompt
from tests.recording_web_server import json_answer, running_web_server

TEXT = "Greet ${name} in ${language}, ${name}."


@pytest.fixture
def prompt_api(api, clock):
    assert api.post("/prompts/greeting?description=Hello", TEXT.encode()).content == b""
    return api


def test_a_prompt_is_saved_with_its_placeholders_and_listed(prompt_api):
    found = prompt_api.get("/prompts/greeting").json()

    assert (found["template"], found["variables"], found["version"]) == (TEXT, ["name", "language"], 1)
    assert (found["description"], found["integrations"], found["tags"]) == ("Hello", [], [])
    for address in ("/prompts", "/prompts/", "/prompts/greeting/versions"):
        assert prompt_api.get(address).json() == [found]


def test_a_template_may_be_sent_as_a_json_string(prompt_api):
    prompt_api.post("/prompts/greeting", b'"Say \\"hi\\"\\n"')

    assert prompt_api.get("/prompts/greeting").json()["template"] == 'Say "hi"\n'


def test_saving_overwrites_the_newest_version_unless_the_request_says_otherwise(prompt_api):
    prompt_api.post("/prompts/greeting", b"two")
    prompt_api.post("/prompts/greeting?autoIncrement=true", b"three")
    prompt_api.post("/prompts/greeting?version=7", b"seven")
    prompt_api.put("/prompts/greeting?version=1", b"one")

    assert {row.version: row.template for row in Prompt.objects.all()} == {1: "one", 2: "three", 7: "seven"}
    assert [each["version"] for each in prompt_api.get("/prompts/greeting/versions").json()] == [7, 2, 1]
    assert prompt_api.get("/prompts/greeting").json()["template"] == "seven"
    assert prompt_api.get("/prompts/greeting?version=2").json()["description"] == "Hello"
    assert [each["version"] for each in prompt_api.get("/prompts").json()] == [7]
    actions = AuditEntry.objects.filter(object_type="prompt").values_list("object_id", "action")
    assert ("greeting:7", "create") in actions and ("greeting:1", "overwrite") in actions


def test_versions_are_deleted_one_by_one_or_all(prompt_api):
    prompt_api.post("/prompts/greeting?autoIncrement=true", b"two")

    assert prompt_api.delete("/prompts/greeting/versions/2").content == b""
    assert prompt_api.get("/prompts/greeting").json()["version"] == 1
    assert prompt_api.delete("/prompts/greeting").content == b""

    for reply in (
        prompt_api.get("/prompts/greeting"),
        prompt_api.delete("/prompts/greeting"),
        prompt_api.put("/prompts/greeting", b"x"),
        prompt_api.get("/prompts/greeting/versions"),
        prompt_api.get("/prompts/greeting/tags"),
    ):
        assert reply.status_code == 404


def test_several_prompts_are_saved_or_none(api):
    assert api.post("/prompts/", [{"name": "a", "template": "A"}, {"name": "b", "template": "B"}]).content == b""
    reply = api.post("/prompts", [{"name": "c", "template": "C"}, {"name": "d"}])
    api.post("/prompts?newVersion=true", [{"name": "a", "template": "A2"}])

    assert (reply.status_code, "[1].template" in reply.content.decode()) == (400, True)
    assert list(Prompt.objects.values_list("name", "version")) == [("a", 2), ("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("/prompts/p", b""),
        ("/prompts/p", b"  "),
        ("/prompts/p", b"\xff"),
        ("/prompts/p?version=-1", b"x"),
        ("/prompts/p?version=x", b"x"),
        ("/prompts/p", b"x" * 300_000),
        (f"/prompts/{'p' * 256}", b"x"),
    ],
)
def test_an_invalid_prompt_is_refused(api, address, body):
    assert api.post(address, body).status_code == 400
    assert not Prompt.objects.exists()


def test_a_bound_prompt_is_used_with_its_models_only(prompt_api):
    assert prompt_text("greeting", None, "openai", "gpt-4o") == TEXT
    prompt_api.post("/prompts/greeting?models=openai:gpt-4o&models=anthropic", b"bound")

    assert prompt_text("greeting", None, "openai", "gpt-4o") == "bound"
    assert prompt_text("greeting", 1, "anthropic", "claude") == "bound"
    assert prompt_text("nothing", None, "openai", "gpt-4o") is None
    with pytest.raises(PromptRefused, match="openai:gpt-4o, anthropic, not with openai:o3"):
        prompt_text("greeting", None, "openai", "o3")
    with pytest.raises(PromptRefused, match="no version 5"):
        prompt_text("greeting", 5, "openai", "gpt-4o")


def test_a_prompt_is_bound_to_a_model_of_an_integration(prompt_api):
    prompt_api.post("/integrations/provider/main", {"type": "openai"})
    prompt_api.post("/integrations/provider/main/integration/gpt-4o", {})
    address = "/integrations/provider/main/integration/gpt-4o/prompt"

    for _ in range(2):
        assert prompt_api.post(f"{address}/greeting").content == b""

    assert [each["name"] for each in prompt_api.get(address).json()] == ["greeting"]
    assert prompt_api.get("/prompts/greeting").json()["integrations"] == ["main:gpt-4o"]
    assert prompt_api.post(f"{address}/nothing").status_code == 404
    assert prompt_api.post("/integrations/provider/main/integration/x/prompt/greeting").status_code == 404


@pytest.fixture
def bound(prompt_api):
    """Return a client of a server with two integrations and versions of a prompt that are bound to them."""
    for name in ("main", "spare"):
        prompt_api.post(f"/integrations/provider/{name}", {"type": "openai"})
        for model in ("gpt-4o", "o3"):
            prompt_api.post(f"/integrations/provider/{name}/integration/{model}", {})
    for models in (("main:gpt-4o", "main", "spare:o3"), ("main:gpt-4o", "main:o3")):
        query = "&".join(f"models={model}" for model in models)
        prompt_api.post(f"/prompts/greeting?autoIncrement=true&{query}", TEXT.encode())
    return prompt_api


def bindings_of(version):
    return Prompt.objects.get(name="greeting", version=version).integrations


def test_a_deleted_integration_is_removed_from_the_bindings_of_prompts(bound):
    assert bound.delete("/integrations/provider/main").status_code == 200

    assert bindings_of(2) == ["spare:o3"]
    entry = AuditEntry.objects.get(action="unbind")
    assert (entry.object_id, entry.facts) == ("greeting:2", {"model": "main"})


def test_a_prompt_without_another_binding_is_not_opened_to_all_models(bound):
    bound.delete("/integrations/provider/main")

    assert bindings_of(3) == ["main:gpt-4o", "main:o3"]
    with pytest.raises(PromptRefused):
        prompt_text("greeting", 3, "spare", "o3")


def test_a_deleted_model_is_removed_from_the_bindings_of_prompts(bound):
    bound.delete("/integrations/provider/main/integration/gpt-4o")

    assert (bindings_of(2), bindings_of(3)) == (["main", "spare:o3"], ["main:o3"])


def test_the_name_of_a_deleted_integration_stays_bound_if_it_is_also_that_of_a_model(bound):
    bound.post("/integrations/provider/spare/integration/main", {})
    bound.delete("/integrations/provider/main")

    assert bindings_of(2) == ["main", "spare:o3"]


def test_the_bindings_to_an_integration_of_the_environment_stay(bound, settings):
    settings.CONDUCTOR_AI_OPENAI_API_KEY = "sk-x"
    bound.post("/integrations/provider/openai", {"type": "openai"})
    bound.post("/prompts/other?models=openai:o3&models=spare", b"text")
    bound.delete("/integrations/provider/openai")

    assert Prompt.objects.get(name="other").integrations == ["openai:o3", "spare"]


def test_tags_apply_to_all_versions_and_end_with_the_prompt(prompt_api):
    tags = [{"key": "team", "value": "a", "type": "METADATA"}]
    prompt_api.post("/prompts/greeting?autoIncrement=true", b"two")
    prompt_api.put("/prompts/greeting/tags", tags)

    assert prompt_api.get("/prompts/greeting/tags").json() == tags
    assert prompt_api.get("/prompts/greeting?version=1").json()["tags"] == tags
    prompt_api.delete("/prompts/greeting")
    assert not Tag.objects.exists()


ANSWER = {
    "choices": [{"message": {"role": "assistant", "content": "Bonjour Ann"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3},
}


@pytest.fixture
def model(api, settings):
    """Save an integration whose server records its requests."""
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        configuration = {"api_key": "sk-4711", "base_url": f"{server.url}/v1"}
        api.post("/integrations/provider/main", {"type": "openai", "configuration": configuration})
        server.answers["/v1/chat/completions"] = json_answer({"id": "1", "object": "chat.completion", **ANSWER})
        yield server


TRIAL = {"prompt": TEXT, "promptVariables": {"name": "Ann"}, "llmProvider": "main", "model": "m", "temperature": 0.1}


def test_a_trial_returns_the_answer_of_the_model_as_text(api, model):
    reply = api.post("/prompts/test", TRIAL)

    assert (reply.content.decode(), reply["Content-Type"]) == ("Bonjour Ann", "text/plain;charset=UTF-8")
    sent = json.loads(model.asked[0]["body"])
    assert "Greet Ann in ${language}, Ann." in str(sent["messages"])
    assert model.asked[0]["headers"]["Authorization"] == "Bearer sk-4711"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"llmProvider": ""}, "`llmProvider` is missing"),
        ({"model": None}, "`model` is missing"),
        ({"prompt": " "}, "must not be empty"),
        ({"llmProvider": "nothing"}, "Create it"),
        ({"temperature": "warm"}, "must be a number"),
        ({"promptVariables": []}, "must be an object"),
    ],
)
def test_an_invalid_trial_calls_nothing(api, model, change, reason):
    reply = api.post("/prompts/test", TRIAL | change)

    assert (reply.status_code, reason in reply.content.decode(), model.asked) == (400, True, [])


def test_a_trial_that_fails_says_why_without_the_key(api, model, settings):
    model.answers["/v1/chat/completions"] = json_answer({"error": {"message": "bad key sk-4711"}}, 401)
    refused = api.post("/prompts/test", TRIAL)
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ()
    guarded = api.post("/prompts/test", TRIAL)

    assert (refused.status_code, guarded.status_code) == (400, 400)
    assert "sk-4711" not in refused.content.decode() and "127.0.0.1" in guarded.content.decode()
