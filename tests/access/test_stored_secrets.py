"""Stored secrets: read on use, refreshed within seconds, free of cost for definitions without secrets."""

from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from conductor_app.access import encryption
from conductor_app.access import secrets as secret_cache
from conductor_app.access.commands import secrets as secrets_and_variables
from conductor_app.access.models import AuditEntry, Secret
from conductor_app.access.secrets import redact
from conductor_app.core.errors import Conflict, Forbidden, Invalid, NotFound
from conductor_app.events.commands import webhooks
from conductor_app.tasks.secrets import secrets_for_worker
from tests.runs.test_statements import Counted
from tests.scenario import ACTOR
from tests.written_secrets import substitute_written

pytestmark = pytest.mark.django_db
WHOLE = {"x": "${workflow.secrets.DB}"}


@pytest.fixture(autouse=True)
def _still(clock):
    """Freeze the time."""


def put(name: str, value: str) -> None:
    secrets_and_variables.put_secret(name, value, ACTOR)
    secret_cache.clear_secret_cache()


def test_a_stored_secret_is_resolved_where_the_definition_names_it():
    put("DB", '{"user": "u", "password": "p4ssword"}')

    assert substitute_written({"x": "${workflow.secrets.DB.password}"}, ["DB"]) == {"x": "p4ssword"}
    assert substitute_written(WHOLE, ["OTHER"]) == {"x": None}
    assert substitute_written(WHOLE, []) == WHOLE


class InterruptedName(str):
    """A name during whose lookup something happens: when it is hashed for the nth time."""

    def __new__(cls, name: str, *_):
        return super().__new__(cls, name)

    def __init__(self, name: str, number: int, event) -> None:
        self.left, self.event = number, event

    def __hash__(self) -> int:
        self.left -= 1
        if self.left == 0:
            self.event()
        return super().__hash__()


@pytest.mark.parametrize("number", range(1, 7))
def test_the_cache_can_be_cleared_while_a_secret_is_looked_up(number):
    put("DB", "p4ssword")
    secret_cache.cached_secrets(["DB"])

    name = InterruptedName("DB", number, secret_cache.clear_secret_cache)

    assert secret_cache.cached_secrets([name]) == {"DB": "p4ssword"}


@pytest.mark.parametrize("number", range(1, 7))
def test_a_secret_that_was_read_before_its_change_is_not_cached_after_it(number):
    put("DB", "before")
    name = InterruptedName("DB", number, lambda: put("DB", "after"))

    secret_cache.cached_secrets([name])
    put_is_over = name.left <= 0

    assert secret_cache.cached_secrets(["DB"]) == {"DB": "after" if put_is_over else "before"}


def test_a_definition_without_secrets_does_not_query_the_table():
    with Counted() as counted:
        substitute_written(WHOLE, [])
        redact(WHOLE, [])

    assert counted.count == 0


def test_several_secrets_take_one_statement_and_are_then_cached(clock):
    put("A", "aaaaaa")
    put("B", "bbbbbb")

    with Counted() as counted:
        for _ in range(3):
            substitute_written(
                ["${workflow.secrets.A}", "${workflow.secrets.B}", "${workflow.secrets.C}"], ["A", "B", "C"]
            )
    assert counted.count == 1
    clock.advance(seconds=2)
    with Counted() as counted:
        substitute_written(["${workflow.secrets.A}"], ["A"])

    assert counted.count == 1


def test_a_change_by_another_process_is_noticed_within_seconds(clock):
    put("DB", "before")
    assert substitute_written(WHOLE, ["DB"]) == {"x": "before"}

    Secret.objects.update(sealed=encryption.encrypt("DB", "after"))
    assert substitute_written(WHOLE, ["DB"]) == {"x": "before"}
    clock.advance(seconds=2)

    assert substitute_written(WHOLE, ["DB"]) == {"x": "after"}


def test_a_deleted_secret_is_not_resolved(clock):
    put("DB", "s3cret")
    assert substitute_written(WHOLE, ["DB"]) == {"x": "s3cret"}

    secrets_and_variables.delete_secret("DB", ACTOR)
    clock.advance(seconds=2)

    assert substitute_written(WHOLE, ["DB"]) == {"x": None}


def test_a_secret_of_the_environment_overrides_the_stored_one_and_is_read_only(monkeypatch):
    put("DB", "kept")
    monkeypatch.setenv("CONDUCTOR_SECRET_DB", "given")

    assert substitute_written(WHOLE, ["DB"]) == {"x": "given"}
    with pytest.raises(Conflict):
        secrets_and_variables.put_secret("DB", "other", ACTOR)
    with pytest.raises(Conflict):
        secrets_and_variables.delete_secret("DB", ACTOR)
    with pytest.raises(Forbidden):
        secrets_and_variables.read_secret("DB", ACTOR)
    assert secrets_and_variables.secret_names() == ["DB"]


def test_a_task_definition_has_secrets_and_variables_delivered():
    put("TOKEN", "s3cret")
    secrets_and_variables.put_variable("REGION", "eu", ACTOR)

    attempt = SimpleNamespace(input_text="{}")
    given = secrets_for_worker(attempt, ["TOKEN", "REGION", "NOTHING", 7])

    assert given == (None, {"TOKEN": "s3cret", "REGION": "eu"})


def test_an_undecryptable_secret_counts_as_missing_and_is_logged_by_name(caplog, settings):
    put("DB", "s3cret")
    settings.SECRET_KEY = "another one"

    assert substitute_written(WHOLE, ["DB"]) == {"x": None}
    assert "secret_unreadable" in caplog.text
    assert "s3cret" not in caplog.text


BAD = {"a bad name": ("a b", "x"), "no name": ("", "x"), "a long name": ("x" * 300, "x"), "no value": ("A", ""),
       "a long value": ("A", "ä" * 40_000)}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD.values(), ids=BAD)
def test_an_invalid_secret_is_rejected(name, value):
    with pytest.raises(Invalid):
        secrets_and_variables.put_secret(name, value, ACTOR)
    with pytest.raises(Invalid):
        secrets_and_variables.put_variable(name, value, ACTOR)


def test_changes_are_audited_without_values():
    put("DB", "s3cret")
    put("DB", "s3cret too")
    secrets_and_variables.read_secret("DB", ACTOR)
    secrets_and_variables.delete_secret("DB", ACTOR)
    secrets_and_variables.delete_secret("DB", ACTOR)

    entries = AuditEntry.objects.order_by("id")
    assert [(entry.action, entry.object_id, entry.facts) for entry in entries] == [
        (action, "DB", {}) for action in ("create", "overwrite", "read", "delete")
    ]


def test_an_unknown_secret_is_not_found():
    with pytest.raises(NotFound):
        secrets_and_variables.read_secret("NOTHING", ACTOR)
    with pytest.raises(NotFound):
        secrets_and_variables.change_tags(Secret, "NOTHING", lambda tags: tags, ACTOR)


def test_secrets_are_reencrypted_with_the_newest_key(settings, capsys):
    put("A", "aaaaaa")
    settings.CONDUCTOR_SECRETS_KEYS = ("a key of the operator, long enough",)
    put("B", "bbbbbb")

    call_command("reseal_secrets")

    assert "1 secrets" in capsys.readouterr().out
    assert all(encryption.is_current(row.sealed) for row in Secret.objects.all())
    assert encryption.decrypt("A", Secret.objects.get(pk="A").sealed) == "aaaaaa"


def test_secrets_of_webhooks_are_reencrypted_with_the_newest_key(settings):
    document = {"name": "shop", "verifier": "HEADER_BASED", "headers": {"X-Key": "aaaaaaaa"}}
    id = webhooks.create_webhook(document, ACTOR).pk
    previous = settings.SECRET_KEY
    settings.CONDUCTOR_SECRETS_KEYS = ("a key of the operator, long enough",)

    call_command("reseal_secrets")
    settings.SECRET_KEY = f"not {previous}"

    webhooks.receive_webhook(id, {"x-key": "aaaaaaaa"}, b"{}")


def test_resealing_names_the_secret_that_no_key_opens(settings):
    put("A", "aaaaaa")
    settings.SECRET_KEY = "another one"

    with pytest.raises(CommandError, match="the secret A"):
        call_command("reseal_secrets")
