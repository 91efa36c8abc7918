"""The requests to a source: credentials, TLS, retries, and replies that no Conductor server sends."""

import json

import pytest
from django.core.management import CommandError

from conductor_app.definitions.models import TaskDefinition, WorkflowDefinition
from conductor_app.tools.importers import source as http_source
from conductor_app.tools.importers.source import SourceError, base_address
from tests.importers.commands import execute, import_conductor
from tests.importers.recorded_source import recorded_source

pytestmark = pytest.mark.django_db
TOKENS = {"keyId": "key-1", "keySecret": "secret-1"}


@pytest.fixture
def source():
    with recorded_source() as running:
        yield running


def refusal(address, *arguments) -> str:
    with pytest.raises(CommandError) as refused:
        import_conductor(address, "--dry-run", *arguments)
    return str(refused.value)


def test_a_token_is_sent_with_each_request_and_never_printed(source, monkeypatch):
    monkeypatch.setenv("IMPORT_TOKEN", "token-1")

    done = execute("import_conductor", "--from", source.address, "--dry-run")

    assert {each["headers"]["X-Authorization"] for each in source.web.asked} == {"token-1"}
    assert "token-1" not in done.output + done.errors
    assert "without encryption" in done.errors


def test_a_key_is_exchanged_for_a_token_and_again_when_the_token_expires(source, monkeypatch):
    monkeypatch.setenv("IMPORT_AUTH_KEY", "key-1")
    monkeypatch.setenv("IMPORT_AUTH_SECRET", "secret-1")
    source.web.answers["/api/token"] = [
        (200, {}, b'{"token": "first"}'),
        (200, {}, b'{"token": "second"}'),
    ]
    source.web.answers["/api/metadata/workflow"] = [
        (401, {}, b'{"message": "token expired"}'),
        source.web.answers["/api/metadata/workflow"],
    ]

    done = import_conductor(source.address)

    assert [json.loads(each["body"]) for each in source.requests("/token")] == [TOKENS, TOKENS]
    sent = [each["headers"]["X-Authorization"] for each in source.requests("/metadata/workflow")]
    assert sent == ["first", "second"]
    assert WorkflowDefinition.objects.count() == 5
    assert "secret-1" not in done.output


def test_a_refused_key_is_an_error_that_names_it(source, monkeypatch):
    monkeypatch.setenv("IMPORT_AUTH_KEY", "key-1")
    monkeypatch.setenv("IMPORT_AUTH_SECRET", "secret-1")
    source.reply("/token", {"message": "invalid"}, 401)

    assert refusal(source.address) == f"{source.address} refuses the access key key-1."


def test_a_key_without_a_secret_is_an_error(source, monkeypatch):
    monkeypatch.setenv("IMPORT_AUTH_KEY", "key-1")

    assert refusal(source.address) == "The environment variable IMPORT_AUTH_SECRET is not set."


def test_further_headers_take_their_values_from_the_environment(source, monkeypatch):
    monkeypatch.setenv("GATEWAY", "Bearer abc")

    import_conductor(source.address, "--dry-run", "--header-from=Authorization=GATEWAY")

    assert {each["headers"]["Authorization"] for each in source.web.asked} == {"Bearer abc"}
    assert "is not set" in refusal(source.address, "--header-from=X-Other=MISSING_VARIABLE")


def test_a_caller_without_permission_gets_the_message_of_the_source(source):
    source.reply("/metadata/taskdefs", {"message": "log in first"}, 401)

    assert "refuses the caller (401). It says: log in first" in refusal(source.address)
    assert not TaskDefinition.objects.exists()


def test_a_list_that_the_caller_may_not_read_is_reported_and_the_rest_is_imported(source):
    source.reply("/scheduler/schedules", {"message": "no"}, 403)

    done = import_conductor(source.address)

    assert "403" in done.report["not_read"]["schedules"]
    assert WorkflowDefinition.objects.count() == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"<html>Welcome</html>", "a text that begins with '<html>Welcome</html>'"),
        (b'{"tasks": []}', "a text that begins with"),
        (b"", "a text that begins with ''"),
        (b'[{"name": "a"}, {"name"', "instead of a list in JSON"),
        (b'[{"name": "a"} {"name": "b"}]', "instead of a list in JSON"),
        (b"[" * 100_000, "instead of a list in JSON"),
    ],
)
def test_a_server_that_is_not_conductor_is_an_error_that_says_what_it_sent(source, text, words):
    source.reply_text("/metadata/taskdefs", text)

    assert words in refusal(source.address)


def test_a_web_page_is_an_error_that_proposes_the_address_of_the_api(source):
    page = (200, {"content-type": "text/html"}, b"<html>")
    source.web.answers["/ui/metadata/taskdefs"] = page

    message = refusal(f"{source.web.url}/ui")

    assert "it sent a web page" in message
    assert f"Did you mean --from {source.web.url}/ui/api?" in message


def test_an_address_without_a_path_is_that_of_the_api(source):
    assert import_conductor(source.web.url).items("task definition")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ftp://old/api", "must begin with http"),
        ("old/api", "must begin with http"),
        ("http://user:password@old/api", "must not contain a user or password"),
        ("http://old/api?token=1", "must not have a query"),
        ("http://old:port/api", "is invalid"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(address, words):
    with pytest.raises(SourceError, match=words) as refused:
        base_address(address)
    assert "user:password" not in str(refused.value)


def test_a_redirect_is_not_followed(source):
    source.web.answers["/api/metadata/taskdefs"] = (302, {"location": "http://169.254.169.254/"}, b"")

    assert "redirects to http://169.254.169.254/. Redirects are not followed" in refusal(source.address)


def test_a_busy_source_is_asked_again(source, monkeypatch):
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    found = source.web.answers["/api/metadata/taskdefs"]
    source.web.answers["/api/metadata/taskdefs"] = [(503, {}, b""), (429, {"retry-after": "9999"}, b""), found]

    done = import_conductor(source.address, "--retries=2")

    assert len(source.requests("/metadata/taskdefs")) == 3
    assert max(pauses) == 30
    assert done.items("task definition") == {"charge": "created", "ship": "created"}


def test_a_source_that_stays_busy_is_an_error(source):
    source.reply("/metadata/workflow", {}, 503)

    assert "answers with status 503" in refusal(source.address)


def test_a_source_that_cannot_be_reached_is_an_error(source):
    assert refusal("http://127.0.0.1:1/api").startswith("http://127.0.0.1:1/api cannot be reached: ")


def test_a_reply_that_is_too_large_is_an_error(source, monkeypatch):
    monkeypatch.setattr(http_source, "MAX_REPLY_BYTES", 1_000)

    assert "is larger than" in refusal(source.address)


def test_documents_that_are_no_definitions_are_left_out_one_by_one(source):
    deep = {"name": "deep", "inputTemplate": {}}
    inner = deep["inputTemplate"]
    for _ in range(300):
        inner["a"] = inner = {}
    source.reply(
        "/metadata/taskdefs",
        [None, 7, [], {}, {"name": ""}, {"name": "late", "retryCount": -1}, deep, {"name": "fine"}, {"name": "fine"}],
    )

    done = import_conductor(source.address, "--only=tasks")

    reasons = [each["reason"] for each in done.report["items"] if each["verdict"] == "invalid"]
    assert TaskDefinition.objects.get().name == "fine"
    assert len(reasons) == 8
    assert "retryCount" in reasons[5]
    assert reasons[6] == "The document is nested more than 200 levels deep."
    assert reasons[7] == "The source lists it twice."


def test_texts_that_a_database_cannot_store_are_repaired_or_refused(source):
    source.reply_text("/metadata/taskdefs", rb'[{"name": "half", "description": "\ud800"}, {"name": "nul\u0000"}]')

    done = import_conductor(source.address, "--only=tasks")

    assert TaskDefinition.objects.get(name="half").document["description"] == "\ufffd"
    assert done.items("task definition")["half"] == "created"
