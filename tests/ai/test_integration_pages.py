"""Pages of integrations: created by kind, changed without displaying keys, tested, with models and prices."""

import re

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.ai.commands.integrations import model_settings, save_integration, save_model
from conductor_app.ai.commands.prompts import save_prompt
from conductor_app.ai.commands.vectors import Document, Place, store_documents, vector_database
from conductor_app.ai.models import Integration, IntegrationModel, ModelCall
from conductor_app.ai.pages.integrations import price_text
from tests.access.users import client_with
from tests.ai.test_mcp import running_mcp_server, shop
from tests.builders import simple, step_of
from tests.page_text import html, page_text
from tests.recording_web_server import json_answer, running_web_server
from tests.scenario import define_workflow

pytestmark = pytest.mark.django_db
LIST = "/admin/integrations/"
KEY = "sk-p4ssw0rd"
FORM = {"name": "main", "api_key": KEY, "base_url": "https://llm.example.org/v1", "is_enabled": "on"}


@pytest.fixture
def integration_row(clock) -> Integration:
    """Save an integration with one model that has a price."""
    configuration = {"api_key": KEY, "base_url": "https://llm.example.org/v1", "organization": "shop"}
    row = save_integration("main", {"type": "openai", "configuration": configuration}, "olga")
    save_model("main", "gpt-4o", {"inputPrice": 2_500, "maxTokens": 5_000_000, "frequency": "weekly"}, "olga")
    return row


PAGE = f"{LIST}of/main/"


def test_an_empty_list_explains_integrations_and_offers_the_kinds(operator):
    page = page_text(operator.get(LIST))

    assert "No integrations" in page and "Ollama" in page and "MCP server" in page


def test_the_kinds_of_new_integrations_are_listed_by_category_with_a_text(operator):
    page = html(operator.get(LIST))
    headings = [*re.findall("<h3>(.*?)</h3>", page)]

    assert headings == ["AI models", "Vector databases", "MCP servers"]
    assert '<span class="muted"></span>' not in page


def test_prices_have_the_currency_and_keep_their_decimals(settings):
    assert [price_text(price) for price in (None, 0, 150, 2_500, 10_000, 1_234_567)] == [
        *("", "$0.00", "$0.15", "$2.50", "$10.00", "$1,234.567"),
    ]
    settings.CONDUCTOR_AI_CURRENCY = "EUR"
    assert price_text(150) == "0.15 EUR"


def test_the_form_of_a_model_names_the_currency(operator, integration_row, settings):
    settings.CONDUCTOR_AI_CURRENCY = "EUR"

    assert "In EUR for a million tokens." in page_text(operator.get(PAGE))


def test_an_integration_of_the_environment_is_named_on_the_list(operator, settings):
    settings.CONDUCTOR_AI_OPENAI_API_KEY = KEY

    assert "Defined in the server's environment: openai." in page_text(operator.get(LIST))


def test_an_integration_is_created_with_the_form_of_its_kind(operator, clock):
    assert 'name="base_url"' in html(operator.get(f"{LIST}new/openai/"))

    answer = operator.post(f"{LIST}new/openai/", {**FORM, "others": '{"organization": "shop"}'})

    assert answer["Location"] == PAGE
    found = model_settings("main", "any")
    assert (found.api_key, found.configuration["organization"]) == (KEY, "shop")
    assert "main OpenAI or compatible not used yet no workflow" in page_text(operator.get(LIST))
    entry = AuditEntry.objects.get(object_type="integration")
    assert (entry.action, KEY in str(entry.facts)) == ("create", False)


def test_each_kind_has_a_form(operator):
    for kind in ["anthropic", "azure_openai", "ollama", "litellm", "pgvectordb", "mcp"]:
        assert operator.get(f"{LIST}new/{kind}/").status_code == 200, kind


def test_an_invalid_form_says_what_is_wrong(operator, integration_row):
    no_key = page_text(operator.post(f"{LIST}new/openai/", {"name": "other"}))
    taken = page_text(operator.post(f"{LIST}new/openai/", FORM))
    colon = page_text(operator.post(f"{LIST}new/openai/", {**FORM, "name": "a:b"}))

    assert "This field is required." in no_key
    assert "already exists" in taken and "colon" in colon
    assert operator.get(f"{LIST}new/fax/").status_code == 404
    assert operator.get(f"{LIST}of/nothing/").status_code == 404


def test_no_page_shows_the_key(operator, viewer, integration_row):
    model = IntegrationModel.objects.get()
    for client in (operator, viewer):
        for address in (LIST, PAGE, f"{LIST}models/{model.pk}/"):
            assert KEY not in html(client.get(address))


def test_an_empty_key_is_kept_and_a_new_one_replaces_it(operator, integration_row):
    others = '{"organization": "other"}'
    operator.post(
        PAGE, {"do": "save", "base_url": FORM["base_url"], "api_key": "", "is_enabled": "on", "others": others}
    )
    found = model_settings("main", "gpt-4o")
    assert (found.api_key, found.configuration["organization"]) == (KEY, "other")

    operator.post(PAGE, {"do": "save", "is_enabled": "on", "base_url": FORM["base_url"], "api_key": "new"})
    assert model_settings("main", "gpt-4o").api_key == "new"


def test_the_key_must_be_entered_again_for_another_address(operator, integration_row):
    answer = operator.post(PAGE, {"do": "save", "base_url": "https://evil.example.org", "api_key": ""})

    assert "must be sent again" in page_text(answer)
    assert model_settings("main", "gpt-4o").base_url == FORM["base_url"]


def test_a_disabled_integration_is_marked(operator, integration_row):
    operator.post(PAGE, {"do": "save", "base_url": FORM["base_url"]})

    assert "main OpenAI or compatible disabled no workflow" in page_text(operator.get(LIST))


def test_models_are_added_with_prices_for_a_million_tokens(operator, integration_row):
    form = {"do": "add_model", "name": "mini", "is_enabled": "on", "input_price": "0.15", "output_price": "0.6"}
    answer = operator.post(PAGE, {**form, "frequency": "daily"})

    assert answer["Location"] == f"{PAGE}#models"
    row = IntegrationModel.objects.get(name="mini")
    assert (row.input_price, row.output_price, row.max_tokens) == (150, 600, None)
    page = page_text(operator.get(PAGE))
    assert "gpt-4o enabled $2.50 no price 5,000,000 per week" in page and "mini enabled $0.15 $0.60" in page
    assert "already has a model" in page_text(operator.post(PAGE, {**form, "frequency": "daily"}))


def test_an_mcp_server_has_no_models(operator, clock):
    operator.post(f"{LIST}new/mcp/", {"name": "tools", "url": "https://tools.example.org/mcp", "is_enabled": "on"})

    page = page_text(operator.get(f"{LIST}of/tools/"))
    assert "MCP server" in page and "Add a model" not in page


def test_a_model_is_changed_and_deleted(operator, integration_row):
    page = f"{LIST}models/{IntegrationModel.objects.get().pk}/"
    assert 'value="2.5"' in html(operator.get(page))

    operator.post(page, {"do": "save", "input_price": "", "max_tokens": "", "frequency": "daily"})
    row = IntegrationModel.objects.get()
    assert (row.input_price, row.max_tokens, row.is_enabled) == (None, None, False)
    assert "Enter a number" in page_text(operator.post(page, {"input_price": "free", "frequency": "daily"}))

    operator.post(page, {"do": "delete"})
    assert not IntegrationModel.objects.exists()
    assert operator.get(page).status_code == 404


def test_an_integration_is_deleted(operator, integration_row):
    answer = operator.post(PAGE, {"do": "delete"}, follow=True)

    assert "Integration main deleted." in page_text(answer)
    assert AuditEntry.objects.filter(object_type="integration", action="delete").exists()


@pytest.fixture
def provider(settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        yield server


def test_a_test_of_the_connection_shows_what_answered(operator, integration_row, provider):
    configuration = {"api_key": KEY, "base_url": f"{provider.url}/v1"}
    save_integration("main", {"type": "openai", "configuration": configuration}, "olga")
    provider.answers["/v1/models"] = json_answer(
        {"object": "list", "data": [{"id": "gpt-4o", "object": "model", "created": 0, "owned_by": "x"}]}
    )
    works = operator.post(PAGE, {"do": "test"})
    provider.answers["/v1/models"] = json_answer({"error": {"message": f"bad key {KEY}"}}, 401)
    fails = operator.post(PAGE, {"do": "test"})

    assert provider.asked[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    assert "offers 1 model: gpt-4o" in page_text(works) and 'class="notice succeeded"' in html(works)
    assert "401" in page_text(fails) and KEY not in html(fails)
    assert "last test failed" in page_text(fails) and "last test failed" not in page_text(works)


def test_a_test_of_a_disabled_integration_calls_nothing(operator, integration_row, provider):
    save_integration("main", {"type": "openai", "enabled": False}, "olga")

    assert "is disabled" in page_text(operator.post(PAGE, {"do": "test"}))
    assert provider.asked == []


def test_each_action_requires_its_permission(integration_row, clock):
    client = client_with("view_integration")
    model = f"{LIST}models/{IntegrationModel.objects.get().pk}/"
    page = page_text(client.get(PAGE))

    assert "you need the permission to change integrations" in page and "Test connection" not in page
    for address, form in [
        (PAGE, {"do": "save"}),
        (PAGE, {"do": "test"}),
        (PAGE, {"do": "delete"}),
        (PAGE, {"do": "add_model", "name": "x"}),
        (model, {"do": "delete"}),
        (f"{LIST}new/openai/", FORM),
    ]:
        assert client.post(address, form).status_code == 403
    assert Integration.objects.count() == IntegrationModel.objects.count() == 1


def test_the_page_names_the_prompts_that_were_bound_to_nothing_else(operator, integration_row):
    save_prompt("greeting", "Hi", "olga", models=["main"])
    save_prompt("closing", "Bye", "olga", models=["main", "spare"])

    page = page_text(operator.post(PAGE, {"do": "delete"}, follow=True))

    assert "These prompts can be used with no other model: greeting." in page


def test_a_user_without_permission_sees_neither_pages_nor_entries(integration_row):
    client = client_with("view_run")

    assert client.get(LIST).status_code == client.get(PAGE).status_code == 403
    assert LIST not in html(client.get("/admin/"))


def test_the_list_takes_the_same_statements_for_any_number_of_integrations(operator, integration_row, statements_of):
    few = statements_of(lambda: operator.get(LIST))
    for number in range(30):
        save_integration(f"more-{number}", {"type": "openai"}, "olga")
        save_model(f"more-{number}", "m", {}, "olga")

    assert statements_of(lambda: operator.get(LIST)) == few


def call_of_main(status: str, started_at: int, **more) -> ModelCall:
    names = {"integration": "main", "model": "gpt-4o", "task_type": "LLM_TEXT_COMPLETE", "definition": "answer"}
    return ModelCall.objects.create(
        id=f"{status}-{started_at}", status=status, started_at=started_at, version=1, **names, **more
    )


def test_the_pages_name_the_workflows_and_steps_that_use_an_integration(operator, integration_row):
    assert 'A step names it in its inputs: "llmProvider": "main"' in page_text(operator.get(PAGE))
    inputs = {"llmProvider": "main", "model": "gpt-4o", "prompt": "Hi"}
    define_workflow("answer", step_of("LLM_TEXT_COMPLETE", "ask", inputParameters=inputs))
    define_workflow("packing", simple("pack", inputParameters={"llmProvider": "spare"}))

    listed = page_text(operator.get(LIST))
    assert "answer" in listed and "packing" not in listed
    assert "Used by Workflow Steps answer ask" in page_text(operator.get(PAGE))


def test_the_pages_show_the_last_call_and_the_last_error(operator, integration_row, clock):
    assert "not used yet" in page_text(operator.get(LIST))
    call_of_main("FAILED", clock.now() - 60_000, run_id="r-1", error="429 Too Many Requests")
    assert "last call failed" in page_text(operator.get(LIST))
    call_of_main("STARTED", clock.now() - 1_000)
    assert "call in progress" in page_text(operator.get(LIST))
    call_of_main("REPLIED", clock.now())

    assert "works" in page_text(operator.get(LIST))
    page = page_text(operator.get(PAGE))
    assert "Last error" in page and "429 Too Many Requests" in page
    assert "429" not in page_text(client_with("view_integration").get(PAGE))


def test_a_stored_key_is_shown_as_stored_and_its_connection_is_tested_next(operator, clock):
    page = operator.post(f"{LIST}new/openai/", FORM, follow=True)

    assert 'placeholder="•••••••• (stored)"' in html(page)
    assert "Secrets stored, never displayed" in page_text(page)
    assert "Test the connection, and then name the integration in a step." in page_text(page)


def test_integrations_that_cannot_be_tested_have_no_button(operator, clock):
    save_integration("repo", {"type": "git", "category": "GIT"}, "olga")

    assert "Test connection" not in page_text(operator.get(f"{LIST}of/repo/"))
    assert "GIT cannot be tested" in page_text(operator.post(f"{LIST}of/repo/", {"do": "test"}))


def test_a_test_of_an_mcp_server_lists_its_tools_and_sends_the_authorization(operator, clock, settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    address = f"{LIST}of/tools/"
    with running_mcp_server(shop().streamable_http_app()) as url:
        save_integration("tools", {"type": "mcp", "configuration": {"url": url}}, "olga")
        works = operator.post(address, {"do": "test"})
    fails = operator.post(address, {"do": "test"})

    assert "The server offers 2 tools: price, broken." in page_text(works)
    assert "The server could not be called: no connection to the server" in page_text(fails)


def test_a_test_of_an_mcp_server_shows_no_secret(operator, provider):
    configuration = {"url": f"{provider.url}/mcp", "authorization": f"Bearer {KEY}"}
    save_integration("tools", {"type": "mcp", "configuration": configuration}, "olga")
    provider.answers["/mcp"] = json_answer({"error": KEY}, 401)

    page = operator.post(f"{LIST}of/tools/", {"do": "test"})

    assert provider.asked[0]["headers"]["Authorization"] == f"Bearer {KEY}"
    assert "the server replied with status 401" in page_text(page) and KEY not in html(page)


def test_a_test_of_a_vector_database_searches_in_it(operator, clock):
    save_integration("docs", {"type": "pgvectordb"}, "olga")
    address = f"{LIST}of/docs/"
    assert "The database answers. It has no documents yet." in page_text(operator.post(address, {"do": "test"}))

    store_documents(Place("docs", "manuals", "all"), [Document("a", [1.0, 2.0], "A"), Document("b", [2.0, 1.0], "B")])
    found = page_text(operator.post(address, {"do": "test"}))
    assert "The database answers. It has 2 documents; a search in the index manuals works." in found

    save_integration("docs", {"configuration": {"dimensions": "3"}}, "olga")
    refused = page_text(operator.post(address, {"do": "test"}))
    assert "The index manuals has vectors of 2 numbers, but the setting dimensions is 3" in refused.replace("`", "")


def test_the_result_of_the_last_test_stays_on_the_pages_until_a_change_or_a_call(
    operator, integration_row, provider, clock
):
    configuration = {"api_key": KEY, "base_url": f"{provider.url}/v1"}
    save_integration("main", {"type": "openai", "configuration": configuration}, "olga")
    provider.answers["/v1/models"] = json_answer({"error": {"message": "no"}}, 403)
    operator.post(PAGE, {"do": "test"})
    clock.advance(seconds=60)

    listed = page_text(operator.get(LIST))
    assert "last test failed tested 1 min ago by olga (" in listed and "403" in listed
    reader = client_with("view_integration")
    assert "403" not in page_text(reader.get(LIST))
    page = page_text(operator.get(PAGE))
    assert "Last test tested 1 min ago by olga" in page and "403" in page and "last test failed" in page
    assert "403" not in page_text(reader.get(PAGE))

    save_integration("main", {"type": "openai", "configuration": configuration}, "olga")
    page = page_text(operator.get(PAGE))
    assert "not used yet" in page and "(before the last change)" in page
    provider.answers["/v1/models"] = json_answer({"object": "list", "data": []})
    operator.post(PAGE, {"do": "test"})
    assert "last test succeeded" in page_text(operator.get(LIST))
    call_of_main("FAILED", clock.now() + 1)
    assert "last call failed" in page_text(operator.get(LIST))


def test_the_last_call_is_found_among_any_number_of_calls_of_others(operator, integration_row, clock):
    call_of_main("REPLIED", clock.now() - 3_600_000)
    for number in range(1_100):
        others = {"integration": "busy", "model": "m", "task_type": "x", "definition": "x", "version": 1}
        ModelCall.objects.create(id=f"o{number}", status="REPLIED", started_at=clock.now(), **others)

    assert "works" in page_text(operator.get(LIST))


def test_the_distance_metric_is_chosen_and_a_stored_one_is_kept(operator, clock):
    form = {"name": "docs", "distanceMetric": "cosine", "is_enabled": "on"}
    operator.post(f"{LIST}new/pgvectordb/", form)
    assert vector_database("docs").metric == "cosine"
    assert "choose" in page_text(operator.post(f"{LIST}new/pgvectordb/", {**form, "name": "x", "distanceMetric": "y"}))

    save_integration("docs", {"configuration": {"distanceMetric": "COSINE"}}, "olga")
    assert '<option value="COSINE" selected>' in html(operator.get(f"{LIST}of/docs/"))
