"""The Python SDK's clients of prompts and integrations, and its orchestrator: every method of them."""

import json

import pytest
from conductor.client.ai.configuration import LLMProvider, VectorDB
from conductor.client.ai.integrations import OpenAIConfig, PineconeConfig
from conductor.client.ai.orchestrator import AIOrchestrator
from conductor.client.http.models.integration_api_update import Frequency, IntegrationApiUpdate
from conductor.client.http.models.integration_update import IntegrationUpdate
from conductor.client.orkes.models.metadata_tag import MetadataTag

from conductor_app.ai.models import ModelUsage

from .model_server import ANSWER, running_model_server

MODEL = "meta/llama-3:8b"
"""A name with the characters that separate parts of paths and of bindings."""


@pytest.fixture
def prompts(clients):
    return clients.get_prompt_client()


@pytest.fixture
def integrations(clients):
    """Return the client, with one integration that has one model."""
    client = clients.get_integration_client()
    configuration = {"api_key": "sk-4711", "base_url": "https://llm.example.org/v1"}
    details = IntegrationUpdate(
        category="AI_MODEL", type="openai", description="Ours", enabled=True, configuration=configuration
    )
    client.save_integration("main", details)
    model = IntegrationApiUpdate(description="Large", enabled=True, max_tokens=1_000, frequency=Frequency.WEEKLY)
    client.save_integration_api("main", MODEL, model)
    return client


@pytest.fixture
def model_server(settings):
    with running_model_server(settings) as server:
        yield server


def test_a_prompt_is_saved_in_versions_listed_and_deleted(prompts):
    prompts.save_prompt("greeting", "Hello", "Greet ${name}", models=["openai:gpt-4o", "anthropic:claude"])
    prompts.save_prompt("greeting", "Hello", "Greet ${name} twice", version=3)
    prompts.save_prompt("greeting", "Hello", "Greet ${name} again", auto_increment=True)

    found = prompts.get_prompt("greeting")
    assert (found.name, found.template, found.variables) == ("greeting", "Greet ${name} again", ["name"])
    assert (found.description, found.integrations) == ("Hello", ["openai:gpt-4o", "anthropic:claude"])
    assert [each.name for each in prompts.get_prompts()] == ["greeting"]
    prompts.delete_prompt("greeting")

    assert prompts.get_prompt("greeting") is None
    assert prompts.get_prompts() == []


def test_tags_of_a_prompt_are_set_and_deleted(prompts):
    prompts.save_prompt("greeting", "Hello", "Hi")
    prompts.update_tag_for_prompt_template("greeting", [MetadataTag("team", "a"), MetadataTag("cost", "b")])

    found = prompts.get_tags_for_prompt_template("greeting")
    assert [(tag.key, tag.value) for tag in found] == [("team", "a"), ("cost", "b")]
    prompts.delete_tag_for_prompt_template("greeting", [MetadataTag("team", "a")])
    assert [tag.key for tag in prompts.get_tags_for_prompt_template("greeting")] == ["cost"]


def test_a_prompt_is_tried_with_a_model(prompts, model_server):
    assert prompts.test_prompt("Greet ${name}", {"name": "Ann"}, "openai", "gpt-4o", stop_words=["."]) == ANSWER

    asked = json.loads(model_server.asked[0]["body"])
    assert (asked["model"], asked["temperature"]) == ("gpt-4o", 0.1) and "Greet Ann" in str(asked["messages"])


def test_an_integration_is_saved_found_and_deleted(integrations):
    found = integrations.get_integration("main")

    assert (found.name, found.type, found.category, found.enabled) == ("main", "openai", "AI_MODEL", True)
    assert found.configuration == {"api_key": "***", "base_url": "https://llm.example.org/v1"}
    assert [each.name for each in integrations.get_integrations()] == ["main"]
    assert integrations.get_providers_and_integrations() == [f"main:{MODEL}"]
    integrations.delete_integration("main")

    assert integrations.get_integration("main") is None


def test_models_are_found_with_swapped_arguments_and_without(integrations):
    found = integrations.get_integration_api(MODEL, "main")

    assert (found.api, found.integration_name, found.description) == (MODEL, "main", "Large")
    assert integrations.get_integration_api("main", MODEL).api == MODEL
    assert integrations.get_integration_api("main", "nothing") is None
    assert [each.api for each in integrations.get_integration_apis("main")] == [MODEL]
    assert integrations.get_integration_available_apis("main") == [MODEL]
    integrations.delete_integration_api(MODEL, "main")
    assert integrations.get_integration_apis("main") == []


def test_a_prompt_is_bound_to_a_model(integrations, prompts):
    prompts.save_prompt("greeting", "Hello", "Hi")
    integrations.associate_prompt_with_integration("main", MODEL, "greeting")

    assert [each.name for each in integrations.get_prompts_with_integration("main", MODEL)] == ["greeting"]


def test_token_usage_is_returned_per_integration_and_model(integrations):
    usage = {"integration": "main", "model": MODEL, "definition": "order"}
    ModelUsage.objects.create(hour=0, **usage, prompt_tokens=10, completion_tokens=5)

    assert integrations.get_token_usage_for_integration("main", MODEL) == 15
    assert integrations.get_token_usage_for_integration_provider("main") == {MODEL: "15"}
    integrations.integrationApi.register_token_usage(7, "main", MODEL)
    assert integrations.get_token_usage_for_integration("main", MODEL) == 22


def test_tags_of_integrations_and_models_are_set_and_deleted(integrations):
    tags = [MetadataTag("team", "a"), MetadataTag("cost", "b")]
    integrations.put_tag_for_integration_provider(tags, "main")
    integrations.delete_tag_for_integration_provider(tags[:1], "main")
    integrations.put_tag_for_integration(tags, "main", MODEL)
    integrations.delete_tag_for_integration(tags[1:], MODEL, "main")

    assert [tag.key for tag in integrations.get_tags_for_integration_provider("main")] == ["cost"]
    assert [tag.key for tag in integrations.get_tags_for_integration("main", MODEL)] == ["team"]


def test_the_orchestrator_registers_models_indexes_and_prompts(configuration, model_server):
    orchestrator = AIOrchestrator(configuration)
    for overwrite in (False, True):
        orchestrator.add_ai_integration(
            "mine", LLMProvider.OPEN_AI, ["gpt-4o", "o3"], "Mine", OpenAIConfig("sk-4711"), overwrite=overwrite
        )
        pinecone = PineconeConfig("key", "https://x.example.org", "eu", "shop")
        orchestrator.add_vector_store("vectors", VectorDB.PINECONE_DB, ["docs"], pinecone, overwrite=overwrite)
    orchestrator.add_prompt_template("greeting", "Greet ${name}", "Hello")
    orchestrator.associate_prompt_template("greeting", "mine", ["gpt-4o", "o3"])

    assert orchestrator.get_prompt_template("greeting").integrations == ["mine:gpt-4o", "mine:o3"]
    assert orchestrator.get_prompt_template("nothing") is None
    assert orchestrator.get_token_used("mine") == {}
    assert orchestrator.get_token_used_by_model("mine", "o3") == 0
    assert orchestrator.test_prompt_template("Greet ${name}", {"name": "Ann"}, "openai", "gpt-4o") == ANSWER
