"""Environment variables: read with their types, refused by name."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.exceptions import ImproperlyConfigured

from conductor_app.settings import environment, services

NOBODY = 65_534


@pytest.mark.parametrize(
    ("given", "validation_error"),
    [
        ("eighty", "PORT='eighty' is refused: it must be a whole number from 1 to 65535."),
        ("0", "PORT='0' is refused: it must be a whole number from 1 to 65535."),
        ("70000", "PORT='70000' is refused: it must be a whole number from 1 to 65535."),
        ("-1", "PORT='-1' is refused: it must be a whole number from 1 to 65535."),
    ],
)
def test_a_number_out_of_bounds_is_refused_by_name(monkeypatch, given, validation_error):
    monkeypatch.setenv("PORT", given)

    with pytest.raises(ImproperlyConfigured) as refusal:
        environment.number("PORT", 8000, least=1, most=65_535)

    assert str(refusal.value) == validation_error


@pytest.mark.parametrize(("most_files", "connections"), [(1000, 500), (100_000, 4096)])
def test_the_limit_of_open_files_limits_connections(monkeypatch, most_files, connections):
    monkeypatch.delenv("WEB_CONNECTIONS", raising=False)
    monkeypatch.setattr(environment.resource, "getrlimit", lambda kind: (256, most_files))

    assert environment.web_connections("WEB_CONNECTIONS", 4096, least=512) == connections


def test_an_empty_variable_is_unset(monkeypatch):
    monkeypatch.setenv("PORT", " ")

    assert environment.number("PORT", 8000) == 8000


def test_a_value_is_read_from_the_file_that_a_variable_names(monkeypatch, tmp_path):
    (tmp_path / "port").write_text("9000\n")
    monkeypatch.setenv("PORT_FILE", str(tmp_path / "port"))

    assert environment.number("PORT", 8000) == 9000
    assert {"PORT", "PORT_FILE"} <= environment.READ_NAMES


def test_a_value_and_a_file_with_it_are_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("PORT", "9000")
    monkeypatch.setenv("PORT_FILE", str(tmp_path / "port"))

    with pytest.raises(ImproperlyConfigured, match=r"^PORT and PORT_FILE are both set\. Remove one of them\.$"):
        environment.number("PORT", 8000)


def test_a_file_that_cannot_be_read_is_refused_by_name(monkeypatch, tmp_path):
    monkeypatch.setenv("PORT_FILE", str(tmp_path / "none"))

    with pytest.raises(ImproperlyConfigured, match=r"^PORT_FILE=.*/none is refused: No such file or directory\.$"):
        environment.number("PORT", 8000)

    (tmp_path / "none").write_bytes(b"\xff")
    with pytest.raises(ImproperlyConfigured, match=r"is refused: it is not text in UTF-8\.$"):
        environment.number("PORT", 8000)


def test_a_missing_variable_is_refused_with_an_example(monkeypatch):
    monkeypatch.delenv("SECRET_KEY", raising=False)

    with pytest.raises(ImproperlyConfigured, match=r"SECRET_KEY is not set\. .* SECRET_KEY=abc"):
        environment.require_value("SECRET_KEY", "abc")


def test_an_invalid_choice_is_rejected_with_the_valid_ones(monkeypatch):
    monkeypatch.setenv("CONDUCTOR_API_ACCESS", "opne")

    with pytest.raises(ImproperlyConfigured, match="must be one of: open, token"):
        environment.choice("CONDUCTOR_API_ACCESS", "token", choices=("open", "token"))


def test_a_network_with_host_bits_is_refused(monkeypatch):
    monkeypatch.setenv("HTTP_TASK_ALLOWED_NETWORKS", "10.0.0.0/8,10.0.0.1/8")

    with pytest.raises(ImproperlyConfigured, match=r"10\.0\.0\.1/8 has host bits set"):
        environment.networks("HTTP_TASK_ALLOWED_NETWORKS")


def test_databases_for_sql_tasks_are_read_by_name(monkeypatch):
    monkeypatch.setenv("SQL_TASK_CONNECTIONS", '{"shop": "sqlite:///var/shop.db"}')

    assert environment.connections("SQL_TASK_CONNECTIONS") == {"shop": "sqlite:///var/shop.db"}


@pytest.mark.parametrize("given", ['{"shop": "mysql://me:tops3cret@x"}', "tops3cret", '["tops3cret"]', '{"shop": 3}'])
def test_databases_that_cannot_be_read_are_refused_without_showing_them(monkeypatch, given):
    monkeypatch.setenv("SQL_TASK_CONNECTIONS", given)

    with pytest.raises(ImproperlyConfigured, match="SQL_TASK_CONNECTIONS is refused") as refused:
        environment.connections("SQL_TASK_CONNECTIONS")

    assert "tops3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("example.org", False),
    ],
)
def test_loopback_addresses_are_recognized(host, is_loopback):
    assert environment.is_loopback(host) is is_loopback


def test_a_secret_is_generated_once_and_readable_only_by_its_owner(tmp_path):
    path = tmp_path / "var" / "secret_key"

    first, second = environment.load_or_create_secret(path), environment.load_or_create_secret(path)

    assert first == second and len(first) > 50
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["secret_key"]


def test_a_database_address_is_parsed():
    database = services.postgresql("DATABASE_URL", "postgresql://me:p%40ss@db:5433/flows?sslmode=require", pool=8)

    assert (database["USER"], database["PASSWORD"], database["HOST"], database["PORT"]) == ("me", "p@ss", "db", "5433")
    assert database["NAME"] == "flows"
    assert database["OPTIONS"]["sslmode"] == "require"
    assert database["OPTIONS"]["pool"]["max_size"] == 8


def test_a_database_that_vanished_is_noticed_after_seconds():
    options = services.postgresql("DATABASE_URL", "postgresql://me@db/flows?keepalives_idle=60")["OPTIONS"]

    limits = {name: options[name] for name in ("connect_timeout", "keepalives", "tcp_user_timeout")}
    assert limits == {"connect_timeout": "5", "keepalives": "1", "tcp_user_timeout": "20000"}
    assert (options["keepalives_interval"], options["keepalives_count"]) == ("3", "3")
    assert options["keepalives_idle"] == "60", "the address overrides the default"


def test_statements_locks_and_pauses_of_a_transaction_have_limits():
    database = services.postgresql("DATABASE_URL", "postgresql://me@db/flows", statement_seconds=60)

    assert database["OPTIONS"]["options"] == (
        "-c plan_cache_mode=force_generic_plan "
        "-c statement_timeout=60000 -c lock_timeout=20000 -c idle_in_transaction_session_timeout=60000"
    )


def test_a_database_address_may_name_the_folder_of_a_socket():
    assert services.postgresql("DATABASE_URL", "postgresql://postgres:@/flows?host=/run/pg")["HOST"] == "/run/pg"


@pytest.mark.parametrize(
    "url", ["mysql://me:secret@db/flows", "postgresql://me:secret@db", "postgresql://me:secret@db:x/flows", "flows"]
)
def test_a_wrong_database_address_is_refused_by_name_and_without_its_password(url):
    with pytest.raises(ImproperlyConfigured) as refusal:
        services.postgresql("DATABASE_URL", url)

    assert str(refusal.value).startswith("DATABASE_URL is refused")
    assert "secret" not in str(refusal.value)


def test_keys_that_could_be_guessed_are_refused_and_not_repeated(monkeypatch):
    monkeypatch.setenv("SECRETS_KEYS", f"{'k' * 32},hunter2")

    with pytest.raises(ImproperlyConfigured) as refusal:
        environment.secret_list("SECRETS_KEYS", least=32)

    assert str(refusal.value) == "SECRETS_KEYS is refused: each of its keys must have at least 32 characters."


def test_keys_preserve_their_order(monkeypatch):
    monkeypatch.setenv("SECRETS_KEYS", f"{'n' * 32}, {'o' * 40}")

    assert environment.secret_list("SECRETS_KEYS", least=32) == ("n" * 32, "o" * 40)


@pytest.mark.parametrize("given", ["host", "http://host", "amqp://", "amqp://me:secret@host:port", "amqp://[secret"])
def test_an_invalid_address_is_rejected_without_repeating_it(monkeypatch, given):
    monkeypatch.setenv("EVENT_QUEUES_AMQP_URL", given)

    with pytest.raises(ImproperlyConfigured, match=r"EVENT_QUEUES_AMQP_URL is refused: .* amqp://host") as refusal:
        environment.address("EVENT_QUEUES_AMQP_URL", schemes=("amqp", "amqps"))

    assert "secret" not in str(refusal.value)


def test_an_address_and_servers_are_optional(monkeypatch):
    monkeypatch.setenv("A", "amqps://me:secret@host:5671//")
    monkeypatch.setenv("B", "one:9092, two:9092")

    assert environment.address("A", schemes=("amqp", "amqps")) == "amqps://me:secret@host:5671//"
    assert environment.servers("B") == "one:9092,two:9092"
    assert environment.address("C", schemes=("amqp",)) == environment.servers("C") == ""


@pytest.mark.parametrize("given", ["one", "one:", "one:x", "kafka://one:9092", "me:secret@one:9092"])
def test_servers_that_are_none_are_refused_by_name(monkeypatch, given):
    monkeypatch.setenv("EVENT_QUEUES_KAFKA_SERVERS", given)

    with pytest.raises(ImproperlyConfigured, match="EVENT_QUEUES_KAFKA_SERVERS is refused"):
        environment.servers("EVENT_QUEUES_KAFKA_SERVERS")


@pytest.mark.parametrize(
    ("id", "token"),
    [("root", ""), ("", "x" * 22), ("ro ot", "x" * 22), ("root", "short"), ("root", "x" * 21 + "!")],
)
def test_a_client_of_taskcluster_has_an_id_and_a_token_or_is_refused(monkeypatch, id, token):
    monkeypatch.setenv("ID", id)
    monkeypatch.setenv("TOKEN", token)

    with pytest.raises(ImproperlyConfigured) as refusal:
        environment.taskcluster_client("ID", "TOKEN")

    assert not token or token not in str(refusal.value)


def test_a_taskcluster_client_is_optional(monkeypatch):
    assert environment.taskcluster_client("ID", "TOKEN") == ("", "")
    monkeypatch.setenv("ID", "static/root")
    monkeypatch.setenv("TOKEN", "x" * 44)
    assert environment.taskcluster_client("ID", "TOKEN") == ("static/root", "x" * 44)


def test_isolation_groups_are_read_as_in_queue_names(monkeypatch):
    monkeypatch.setenv("GROUPS", "blue, @east-blue,blue")
    assert environment.groups("GROUPS") == ("blue", "@east-blue")

    monkeypatch.setenv("GROUPS", "blue,@")
    with pytest.raises(ImproperlyConfigured, match="GROUPS is refused"):
        environment.groups("GROUPS")


@contextmanager
def another_user() -> Iterator[int]:
    """Act as a user without rights for files of this one. Only root can."""
    if os.geteuid() != 0:
        pytest.skip("Only root can act as another user.")
    os.seteuid(NOBODY)
    try:
        yield NOBODY
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("file", ["", "secret_key", "conductor.sqlite3", "broker"])
def test_a_data_folder_of_another_user_is_refused_by_name_with_what_to_do(tmp_path, file):
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    if file:
        os.chown(tmp_path, NOBODY, NOBODY)
        (tmp_path / file).touch(mode=0o600)
    path = tmp_path / file

    with another_user() as user, pytest.raises(ImproperlyConfigured) as refusal:
        environment.require_access("VAR_DIR", tmp_path, "secret_key", "conductor.sqlite3", "broker")

    assert str(refusal.value).startswith(f"VAR_DIR='{tmp_path}' is refused: user {user} cannot read and write {path}")
    assert "which belongs to user 0" in str(refusal.value)


def test_a_data_folder_below_a_folder_of_another_user_is_refused_by_name(tmp_path):
    folder = tmp_path / "private" / "var"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o700)

    with another_user(), pytest.raises(ImproperlyConfigured, match="cannot enter a folder above it"):
        environment.require_access("VAR_DIR", folder)


def test_a_data_folder_of_the_same_user_is_accepted(tmp_path):
    (tmp_path / "secret_key").touch(mode=0o600)

    environment.require_access("VAR_DIR", tmp_path, "secret_key", "conductor.sqlite3")
