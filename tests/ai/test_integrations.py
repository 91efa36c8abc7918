"""Integrations and their models, as clients call them. Secret settings are never returned."""

from io import StringIO

import pytest
from django.core.management import call_command

from conductor_app.access import encryption
from conductor_app.access.models import AuditEntry, Tag
from conductor_app.ai.commands import integrations
from conductor_app.ai.commands.integrations import UnknownIntegration, model_settings
from conductor_app.ai.models import Integration, IntegrationModel, ModelUsage
from tests.conftest import NOON

KEY = "sk-4711"
OPENAI = {
    "type": "openai",
    "category": "AI_MODEL",
    "description": "Ours",
    "enabled": True,
    "configuration": {"api_key": KEY, "base_url": "https://llm.example.org/v1", "organization": "shop"},
}


@pytest.fixture
def integration_api(api, clock):
    """Save one integration with one model."""
    assert api.post("/integrations/provider/main", OPENAI).content == b""
    assert api.post("/integrations/provider/main/integration/gpt-4o", {"description": "Large"}).content == b""
    return api


def test_an_integration_is_saved_listed_and_deleted_with_its_models(integration_api):
    found = integration_api.get("/integrations/provider/main").json()

    assert found["configuration"] == {**OPENAI["configuration"], "api_key": "***"}
    assert (found["type"], found["modelsCount"], found["createTime"]) == ("openai", 1, NOON)
    assert [each["api"] for each in found["apis"]] == ["gpt-4o"]
    for address in (
        "/integrations/provider",
        "/integrations",
        "/integrations/",
        "/integrations?category=AI_MODEL",
        "/integrations?type=openai",
    ):
        assert [each["name"] for each in integration_api.get(address).json()] == ["main"]
    for other in ("type=VECTOR_DB", "type=anthropic", "category=MCP"):
        assert integration_api.get(f"/integrations?{other}").json() == []
    assert integration_api.get("/integrations?category=openai").status_code == 400
    assert integration_api.get("/integrations/all").json() == ["main:gpt-4o"]

    assert integration_api.delete("/integrations/provider/main").content == b""

    assert integration_api.get("/integrations/provider/main").status_code == 404
    assert not IntegrationModel.objects.exists()
    assert integration_api.delete("/integrations/provider/main").status_code == 404


def test_a_key_is_stored_encrypted_and_appears_in_no_reply_and_no_audit_entry(integration_api):
    row = Integration.objects.get()
    replies = [
        integration_api.get(f"/integrations{rest}").content.decode()
        for rest in ("", "/provider", "/provider/main", "/provider/main/integration", "/all", "/def")
    ]

    assert KEY not in "".join(replies) + row.sealed + str(row.configuration)
    assert KEY not in repr(model_settings("main", "gpt-4o"))
    assert all(KEY not in str(entry.facts) for entry in AuditEntry.objects.all())
    assert model_settings("main", "gpt-4o").api_key == KEY


def test_a_hidden_value_that_is_sent_back_keeps_the_stored_one(integration_api):
    integration_api.post(
        "/integrations/provider/main", {**OPENAI, "configuration": {**OPENAI["configuration"], "api_key": "***"}}
    )
    assert model_settings("main", "gpt-4o").api_key == KEY

    integration_api.post("/integrations/provider/main", {"type": "openai", "description": "Only this"})
    assert model_settings("main", "gpt-4o").api_key == KEY

    reply = integration_api.post(
        "/integrations/provider/other", {"type": "openai", "configuration": {"api_key": "***"}}
    )
    assert (reply.status_code, "Send the value" in reply.content.decode()) == (400, True)


@pytest.mark.parametrize("change", [{"base_url": "https://evil.example.org"}, {"base_url": None}, {"type": "mistral"}])
def test_a_stored_key_is_not_sent_to_another_address(integration_api, change):
    configuration = {**OPENAI["configuration"], "api_key": "***", **change}
    document = {**OPENAI, "type": change.get("type", "openai"), "configuration": configuration}

    reply = integration_api.post("/integrations/provider/main", document)

    assert (reply.status_code, "must be sent again" in reply.content.decode()) == (400, True)
    assert model_settings("main", "gpt-4o").base_url == "https://llm.example.org/v1"


def test_a_stored_key_is_not_sent_to_another_address_with_a_password(api):
    addresses = ["https://user:pass@llm.example.org/v1", "https://user:pass@evil.example.org/v1"]
    configurations = [{"base_url": each, "api_key": KEY} for each in addresses]
    assert api.post("/integrations/provider/main", {**OPENAI, "configuration": configurations[0]}).status_code == 200

    changed = {**OPENAI, "configuration": {**configurations[1], "api_key": "***"}}
    reply = api.post("/integrations/provider/main", changed)

    assert (reply.status_code, "must be sent again" in reply.content.decode()) == (400, True)
    assert model_settings("main", "gpt-4o").base_url == addresses[0]
    kept = {**OPENAI, "configuration": {"base_url": "***", "api_key": "***"}}
    assert api.post("/integrations/provider/main", kept).status_code == 200


SECRET_SETTINGS = {
    "apiKey": KEY,
    "secretAccessKey": KEY,
    "bearerToken": KEY,
    "connectionString": f"postgresql://host/{KEY}",
    "headers": {"Authorization": f"Bearer {KEY}"},
    "proxy": f"http://user:{KEY}@proxy",
    "urls": [f"http://user:{KEY}@proxy"],
    **dict.fromkeys(("subscription_key", "key", "accountKey", "bearer", "pat", "signingKey", "anything"), KEY),
    "pin": 4711,
}


@pytest.mark.parametrize("name", SECRET_SETTINGS)
def test_settings_that_are_not_known_to_be_public_are_encrypted(api, name):
    api.post("/integrations/provider/main", {"type": "openai", "configuration": {name: SECRET_SETTINGS[name]}})

    assert api.get("/integrations/provider/main").json()["configuration"] == {name: "***"}
    assert integrations.read_secrets(Integration.objects.get()) == {name: SECRET_SETTINGS[name]}


def test_public_settings_and_switches_are_not(api):
    plain = {"max_tokens": 100, "tokenLimit": 5, "auth-header-name": "X-Key", "region": "eu", "verified": True}
    api.post("/integrations/provider/main", {"type": "openai", "configuration": plain})

    assert api.get("/integrations/provider/main").json()["configuration"] == plain


def test_a_setting_that_an_earlier_version_stored_in_clear_text_is_hidden_used_and_encrypted_on_request(
    integration_api,
):
    Integration.objects.update(configuration={"base_url": "https://llm.example.org/v1", "signingKey": KEY}, sealed="")

    assert integration_api.get("/integrations/provider/main").json()["configuration"]["signingKey"] == "***"
    assert model_settings("main", "gpt-4o").secrets == {"signingKey": KEY}
    assert KEY not in repr(model_settings("main", "gpt-4o"))
    moved = {"type": "openai", "configuration": {"base_url": "https://evil.example.org", "signingKey": "***"}}
    assert integration_api.post("/integrations/provider/main", moved).status_code == 400

    assert integrations.reencrypt_integrations() == 1
    row = Integration.objects.get()
    assert row.configuration == {"base_url": "https://llm.example.org/v1", "signingKey": "***"}
    assert integrations.read_secrets(row) == {"signingKey": KEY}
    assert integrations.reencrypt_integrations() == 0


REFUSED = {
    "no type": ("main", {"category": "AI_MODEL"}, "type"),
    "an unknown category": ("main", {"type": "openai", "category": "MODEL"}, "category"),
    "a colon in the name": ("a:b", OPENAI, "colon"),
    "a list as configuration": ("main", {"type": "openai", "configuration": []}, "must be an object"),
    "too large settings": ("main", {"type": "openai", "configuration": {"x": "y" * 70_000}}, "at most"),
    "a body that is a list": ("main", [], "must be a JSON object"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_integration_is_refused_with_the_reason(api, case):
    name, document, reason = REFUSED[case]

    reply = api.post(f"/integrations/provider/{name}", document)

    assert (reply.status_code, reason in reply.content.decode()) == (400, True)
    assert not Integration.objects.exists()


def test_several_integrations_are_saved_or_none(api):
    assert api.post("/integrations", [{**OPENAI, "name": "a"}, {**OPENAI, "name": "b"}]).content == b""
    assert api.post("/integrations/", [{**OPENAI, "name": "c"}, {"name": "d"}]).status_code == 400

    assert list(Integration.objects.values_list("name", flat=True)) == ["a", "b"]


def test_a_model_has_prices_and_a_token_limit_that_stay_when_a_client_omits_them(integration_api):
    address = "/integrations/provider/main/integration/gpt-4o"
    integration_api.post(
        address, {"inputPrice": 2_500, "outputPrice": 10_000, "maxTokens": 100_000, "frequency": "MONTHLY"}
    )
    integration_api.post(address, {"description": "Larger", "enabled": True})

    found = integration_api.get(address).json()
    assert (found["inputPrice"], found["maxTokens"], found["frequency"]) == (2_500, 100_000, "monthly")
    assert (found["description"], found["integrationName"]) == ("Larger", "main")
    assert model_settings("main", "gpt-4o").output_price == 10_000
    integration_api.post(address, {"maxTokens": None})
    assert "maxTokens" not in integration_api.get(address).json()


@pytest.mark.parametrize(
    "document",
    [
        {"frequency": "hourly"},
        {"inputPrice": -1},
        {"configuration": {"base_url": "https://evil.example.org"}},
    ],
)
def test_an_invalid_model_is_refused(integration_api, document):
    assert integration_api.post("/integrations/provider/main/integration/gpt-4o", document).status_code == 400


def test_a_key_of_a_model_is_not_stored_because_its_integration_has_one(integration_api):
    address = "/integrations/provider/main/integration/gpt-4o"

    assert integration_api.post(address, {"configuration": {"api_key": KEY, "temperature": 0}}).status_code == 200
    assert integration_api.get(address).json()["configuration"] == {"temperature": 0}


def test_models_are_listed_by_name_and_only_enabled_ones_on_request(integration_api):
    integration_api.post("/integrations/provider/main/integration/old", {"enabled": False})
    integration_api.post("/integrations/provider/main/integration/gpt-oss:20b", {})

    names = [each["api"] for each in integration_api.get("/integrations/provider/main/integration").json()]
    assert (
        names
        == ["gpt-4o", "gpt-oss:20b", "old"]
        == integration_api.get("/integrations/provider/main/integration/all").json()
    )
    active = integration_api.get("/integrations/provider/main/integration?activeOnly=true").json()
    assert [each["api"] for each in active] == ["gpt-4o", "gpt-oss:20b"]
    assert integration_api.get("/integrations/provider/nothing/integration").status_code == 404


def test_a_model_is_found_and_deleted_with_integration_and_model_in_either_order(integration_api):
    swapped = "/integrations/provider/gpt-4o/integration/main"
    assert integration_api.get(swapped).json()["integrationName"] == "main"
    assert integration_api.get(f"{swapped}/tags").json() == []

    assert integration_api.delete(swapped).status_code == 200
    assert integration_api.get("/integrations/provider/main/integration/gpt-4o").status_code == 404


def test_tags_are_set_removed_and_forgotten_with_their_object(integration_api):
    tags = [{"key": "team", "value": "a", "type": "METADATA"}, {"key": "cost", "value": "b", "type": "METADATA"}]
    for address in ("/integrations/provider/main/tags", "/integrations/provider/main/integration/gpt-4o/tags"):
        integration_api.put(address, tags)
        assert integration_api.get(address).json() == tags
        integration_api.delete(address, tags[:1])
        assert integration_api.get(address).json() == tags[1:]

    integration_api.delete("/integrations/provider/main")
    assert not Tag.objects.exists()


def test_token_usage_is_the_sum_of_recorded_and_reported_tokens(integration_api, clock):
    model = {"integration": "main", "model": "gpt-4o", "definition": "order"}
    ModelUsage.objects.create(hour=0, **model, prompt_tokens=10, completion_tokens=5)

    for _ in range(2):
        assert integration_api.post("/integrations/provider/main/integration/gpt-4o/metrics", 7).content == b""

    assert integration_api.get("/integrations/provider/main/metrics").json() == {"gpt-4o": 29}
    assert integration_api.get("/integrations/provider/main/integration/gpt-4o/metrics").json() == 29
    assert ModelUsage.objects.count() == 2
    for invalid in (-1, "many", True, 2**60):
        assert (
            integration_api.post("/integrations/provider/main/integration/gpt-4o/metrics", invalid).status_code == 400
        )


def test_the_kinds_of_integrations_are_listed_with_their_settings(api):
    kinds = {each["name"]: each for each in api.get("/integrations/def").json()}

    assert kinds["openai"]["configuration"][0]["fieldType"] == "PASSWORD"
    assert kinds["mistral"]["configuration"][1]["defaultValue"] == "https://api.mistral.ai/v1"
    assert [each["name"] for each in api.get("/integrations/def/anthropic").json()] == ["anthropic"]
    assert api.get("/integrations/def/nothing").json() == []


def test_settings_of_a_model_say_what_to_do_about_what_is_missing(integration_api):
    for name, model, hint in [
        ("nothing", "gpt-4o", "Create it"),
        ("main", "gpt-5", "has no model named 'gpt-5'. It has: gpt-4o"),
    ]:
        with pytest.raises(UnknownIntegration, match=hint):
            model_settings(name, model)
    integration_api.post("/integrations/provider/main/integration/gpt-4o", {"enabled": False})
    with pytest.raises(UnknownIntegration, match="model main:gpt-4o is disabled"):
        model_settings("main", "gpt-4o")
    integration_api.post("/integrations/provider/main", {"type": "openai", "enabled": False})
    with pytest.raises(UnknownIntegration, match="integration main is disabled"):
        model_settings("main", "gpt-4o")


def test_an_integration_without_models_permits_every_model_without_a_price(api):
    api.post("/integrations/provider/fast", {"type": "mistral", "configuration": {"api_key": KEY}})

    found = model_settings("fast", "small")

    assert (found.base_url, found.input_price, found.kind) == ("https://api.mistral.ai/v1", None, "mistral")


def test_the_environment_defines_integrations_without_a_row(db, settings):
    settings.CONDUCTOR_AI_OPENAI_API_KEY = KEY
    settings.CONDUCTOR_AI_OLLAMA_URL = "http://localhost:11434"

    found = model_settings("openai", "gpt-4o")
    assert (found.api_key, found.kind) == (KEY, "openai")
    assert model_settings("ollama", "llama3").base_url == "http://localhost:11434/v1"
    with pytest.raises(UnknownIntegration):
        model_settings("anthropic", "x")


def test_secrets_are_encrypted_again_with_a_new_key(integration_api, settings):
    settings.CONDUCTOR_SECRETS_KEYS = ("a new key",)
    assert not encryption.is_current(Integration.objects.get().sealed)

    call_command("reseal_secrets", stdout=(printed := StringIO()))

    assert "Encrypted 1 secrets" in printed.getvalue()
    assert encryption.is_current(Integration.objects.get().sealed)
    assert model_settings("main", "gpt-4o").api_key == KEY


def test_a_lost_key_is_reported_without_the_value(integration_api, settings):
    settings.SECRET_KEY = "another key of this server, long enough"

    with pytest.raises(UnknownIntegration, match="Enter them again"):
        model_settings("main", "gpt-4o")
