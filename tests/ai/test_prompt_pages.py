"""Pages of prompts: versions with their differences, and trials with a model."""

import json

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.ai.commands.integrations import save_integration, save_model
from conductor_app.ai.commands.prompts import save_prompt
from conductor_app.ai.models import Prompt
from tests.page_text import html, page_text
from tests.recording_web_server import json_answer, running_web_server

pytestmark = pytest.mark.django_db
LIST = "/admin/prompts/"
TEXT = "Greet ${name}\nin ${language}."


@pytest.fixture
def stored_prompt(clock) -> Prompt:
    return save_prompt("greeting", TEXT, "olga", description="Hello")


def page_of(row: Prompt) -> str:
    return f"{LIST}{row.pk}/"


def test_an_empty_list_explains_prompts(operator):
    assert "No prompts" in page_text(operator.get(LIST))


def test_a_prompt_is_created_and_listed_with_its_placeholders(author, clock):
    form = {"name": "greeting", "template": TEXT.replace("\n", "\r\n"), "models": "openai:gpt-4o\r\n anthropic "}

    page = author.post(f"{LIST}new/", form, follow=True)

    row = Prompt.objects.get()
    assert "Prompt greeting version 1 saved." in page_text(page)
    assert (row.template, row.integrations) == (TEXT, ["openai:gpt-4o", "anthropic"])
    assert "greeting v1 name, language openai:gpt-4o, anthropic" in page_text(author.get(LIST))
    assert AuditEntry.objects.get(object_type="prompt").action == "create"


def test_an_invalid_form_says_what_is_wrong(operator, stored_prompt):
    empty = page_text(operator.post(f"{LIST}new/", {"name": "other", "template": "  "}))
    taken = page_text(operator.post(f"{LIST}new/", {"name": "greeting", "template": "x"}))
    long = page_text(operator.post(page_of(stored_prompt), {"do": "save", "template": "x" * 300_000}))

    assert "must not be empty" in empty and "already exists" in taken and "at most 262,144 bytes" in long
    assert operator.get(f"{LIST}{2**70}/").status_code == operator.get(f"{LIST}99/").status_code == 404


def test_a_version_is_changed_and_saved_as_a_new_one(author, stored_prompt):
    author.post(page_of(stored_prompt), {"do": "save", "template": "changed", "description": "", "models": ""})
    author.post(page_of(stored_prompt), {"do": "new_version", "template": "newer"})

    assert {row.version: row.template for row in Prompt.objects.all()} == {1: "changed", 2: "newer"}


def test_the_differences_from_the_version_before_are_shown_and_another_can_be_chosen(operator, stored_prompt):
    save_prompt("greeting", TEXT + "\nBe brief.", "olga", new_version=True)
    third = save_prompt("greeting", "Say hello.", "olga", new_version=True)

    page = html(operator.get(page_of(third)))
    assert "Be brief." in page and '<option value="2" selected>' in page
    chosen = html(operator.get(page_of(third), {"with": "1"}))
    assert "Be brief." not in chosen and "Say hello." in chosen
    assert operator.get(page_of(third), {"with": "x"}).status_code == 200


def test_a_version_is_deleted_and_the_others_stay(author, stored_prompt):
    second = save_prompt("greeting", "newer", "olga", new_version=True)

    author.post(page_of(stored_prompt), {"do": "delete"})

    assert list(Prompt.objects.all()) == [second]


@pytest.fixture
def model(settings, clock):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ("127.0.0.0/8",)
    with running_web_server() as server:
        configuration = {"api_key": "sk-4711", "base_url": f"{server.url}/v1"}
        save_integration("main", {"type": "openai", "configuration": configuration}, "olga")
        save_model("main", "small", {}, "olga")
        message = {"role": "assistant", "content": "<b>Bonjour</b> Ann"}
        answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        usage = {"prompt_tokens": 1_209, "completion_tokens": 3, "total_tokens": 1_212}
        server.answers["/v1/chat/completions"] = json_answer(
            {"id": "1", "object": "chat.completion", "created": 0, "model": "small", **answer, "usage": usage}
        )
        yield server


def trial(**fields):
    return {"do": "try", "try-model": "main:small", "try-variable_0": "Ann", "try-variable_1": "French", **fields}


def test_a_trial_shows_the_answer_and_its_tokens(operator, stored_prompt, model):
    page = html(operator.get(page_of(stored_prompt)))
    assert '<option value="main:small">' in page and "${language}" in page

    answer = operator.post(page_of(stored_prompt), trial())

    assert "&lt;b&gt;Bonjour&lt;/b&gt; Ann" in html(answer) and "1209" in page_text(answer).replace(",", "")
    messages = json.loads(model.asked[0]["body"])["messages"]
    assert "Greet Ann\nin French." in [message["content"] for message in messages]


def test_a_trial_suggests_the_models_that_the_prompt_is_bound_to(operator, stored_prompt, model):
    save_model("main", "large", {}, "olga")
    save_prompt("greeting", TEXT, "olga", models=["main:small"])

    page = html(operator.get(page_of(stored_prompt)))

    assert '<option value="main:small">' in page and "main:large" not in page


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"try-model": "small"}, "Enter integration:model"),
        ({"try-model": "nothing:small"}, "There is no integration named"),
        ({"try-model": "main:large"}, "has no model named"),
    ],
)
def test_a_trial_that_cannot_be_sent_says_why(operator, stored_prompt, model, fields, reason):
    assert reason in page_text(operator.post(page_of(stored_prompt), trial(**fields)))
    assert model.asked == []


def test_a_trial_with_another_model_than_the_prompt_is_bound_to_is_refused(operator, stored_prompt, model):
    save_prompt("greeting", TEXT, "olga", models=["other:x"])

    assert "may be used with other:x" in page_text(operator.post(page_of(stored_prompt), trial()))


def test_a_failed_call_is_shown_without_the_key(operator, stored_prompt, model):
    model.answers["/v1/chat/completions"] = json_answer({"error": {"message": "sk-4711 is wrong"}}, 401)

    answer = operator.post(page_of(stored_prompt), trial())

    assert "401" in page_text(answer) and "sk-4711" not in html(answer)


def test_each_action_requires_its_permission(viewer, author, stored_prompt, model):
    page = page_text(viewer.get(page_of(stored_prompt)))

    assert "Greet ${name}" in page and "Test with a model" not in page
    for act in ("save", "new_version", "delete", "try"):
        assert viewer.post(page_of(stored_prompt), {"template": "x", **trial(do=act)}).status_code == 403
    assert viewer.get(f"{LIST}new/").status_code == 403
    # A trial costs money: who may write prompts may not send them.
    assert author.post(page_of(stored_prompt), trial()).status_code == 403
    assert (Prompt.objects.get().template, model.asked) == (TEXT, [])


def test_the_pages_take_the_same_statements_for_any_number_of_rows(operator, stored_prompt, statements_of):
    few = statements_of(lambda: operator.get(LIST)), statements_of(lambda: operator.get(page_of(stored_prompt)))
    for number in range(20):
        save_prompt("greeting", f"x{number}", "olga", new_version=True)
        save_prompt(f"more-{number}", "x", "olga")

    assert (
        statements_of(lambda: operator.get(LIST)),
        statements_of(lambda: operator.get(page_of(stored_prompt))),
    ) == few
