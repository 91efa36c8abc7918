"""The profiles, loaded as a process loads them."""

import os

import pytest

from tests.forked_interpreter import run_forked

CLUSTER = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "SECRET_KEY": "a-key-for-tests-" * 4,
    "ALLOWED_HOSTS": "localhost",
}


@pytest.fixture
def loaded(tmp_path):
    """Return a function that evaluates an expression under a profile's settings in a new process, and returns its
    output or error.
    """

    def load(profile: str, expression: str = "''", **variables: str) -> str:
        program = f"from django.conf import settings; import django; django.setup(); print({expression})"
        given = {"DJANGO_SETTINGS_MODULE": f"conductor_app.settings.{profile}", "VAR_DIR": str(tmp_path)} | variables
        bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        done = run_forked("-c", program, env=bare | given)
        return (done.stdout or done.stderr.splitlines()[-1]).strip()

    return load


@pytest.mark.parametrize("missing", sorted(CLUSTER))
def test_a_cluster_refuses_to_start_without_each_of_its_variables(loaded, missing):
    rest = {name: value for name, value in CLUSTER.items() if name != missing}

    assert f"ImproperlyConfigured: {missing} is not set." in loaded("cluster", **rest)


def test_a_cluster_requires_a_token_and_notifies_over_redis(loaded):
    values = loaded("cluster", "settings.CONDUCTOR_API_ACCESS, settings.CONDUCTOR_WAKEUPS", **CLUSTER)

    assert values == "token conductor_app.notifications.redis"


def test_a_pooled_database_gets_neither_session_parameters_nor_prepared_statements(loaded):
    expression = "'options' in settings.DATABASES['default']['OPTIONS'], settings.CONDUCTOR_SQL_PREPARED"

    assert loaded("cluster", expression, **CLUSTER) == "True True"
    assert loaded("cluster", expression, DATABASE_POOLER="transaction", **CLUSTER) == "False False"
    assert "DATABASE_POOLER='session' is refused" in loaded("cluster", DATABASE_POOLER="session", **CLUSTER)


def test_a_cluster_rejects_an_invalid_redis_address(loaded):
    assert "REDIS_URL is refused" in loaded("cluster", **CLUSTER | {"REDIS_URL": "127.0.0.1:6379"})


def test_a_single_machine_on_loopback_requires_no_login(loaded):
    values = loaded("embedded", "settings.CONDUCTOR_API_ACCESS, settings.ALLOWED_HOSTS")

    assert values == "open ['localhost', '127.0.0.1', '[::1]']"


def test_a_reachable_single_machine_requires_a_token_and_allowed_hosts(loaded):
    assert "ALLOWED_HOSTS is not set" in loaded("embedded", HOST="0.0.0.0")
    values = loaded(
        "embedded",
        "settings.CONDUCTOR_API_ACCESS, settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS",
        HOST="0.0.0.0",
        ALLOWED_HOSTS="conductor.example.org",
    )
    assert values == "token ()"


@pytest.mark.parametrize("key", ["a", "a" * 60, "x7Gk2" * 9])
@pytest.mark.parametrize("profile", ["cluster", "embedded"])
def test_a_short_or_monotonous_secret_key_is_rejected_without_being_printed(loaded, profile, key):
    error = loaded(profile, **CLUSTER | {"SECRET_KEY": key})

    assert "SECRET_KEY is refused: it must have at least 50 random characters" in error
    assert (
        key not in error.removeprefix("django.core.exceptions.ImproperlyConfigured: SECRET_KEY is refused")
        or key == "a"
    )


def test_previous_secret_keys_come_from_a_list(loaded):
    assert loaded("embedded", "settings.SECRET_KEY_FALLBACKS", SECRET_KEY_FALLBACKS="one, two") == "['one', 'two']"


@pytest.mark.parametrize("profile", ["cluster", "embedded"])
def test_the_wildcard_for_all_hosts_is_refused(loaded, profile):
    assert "ALLOWED_HOSTS=* is refused" in loaded(profile, **CLUSTER | {"ALLOWED_HOSTS": "localhost,*"})


DEPLOYMENT_CHECK = "__import__('django').core.checks.run_checks(include_deployment_checks=True)"
HTTPS_SETTINGS = "settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE, settings.SECURE_HSTS_SECONDS > 0"


def test_a_cluster_expects_https_unless_it_is_switched_off(loaded):
    assert loaded("cluster", HTTPS_SETTINGS, **CLUSTER) == "True True True"
    assert loaded("cluster", HTTPS_SETTINGS, **CLUSTER, HTTPS="0") == "False False False"


COOKIES = (
    "[settings.SESSION_COOKIE_NAME, settings.SESSION_COOKIE_PATH, settings.CSRF_COOKIE_NAME, settings.CSRF_COOKIE_PATH]"
)


def test_cookies_are_those_of_the_path_prefix(loaded):
    assert loaded("embedded", COOKIES) == "['sessionid', '/', 'csrftoken', '/']"
    expected = "['sessionid_tools_shop', '/tools/shop', 'csrftoken_tools_shop', '/tools/shop']"
    assert loaded("embedded", COOKIES, SCRIPT_NAME="/tools/shop") == expected


def test_djangos_deployment_check_finds_nothing_in_a_cluster(loaded):
    expression = (
        f"[each.id for each in {DEPLOYMENT_CHECK} if each.id.startswith('security.') and not each.is_silenced()]"
    )

    assert loaded("cluster", expression, **CLUSTER) == "[]"


def test_a_cluster_limits_statements_and_replaces_closed_connections_by_default(loaded):
    database = "settings.DATABASES['default']"
    expression = (
        f"{database}['ENGINE'], {database}['OPTIONS']['options'].split()[3], {database}['OPTIONS']['keepalives']"
    )

    assert loaded("cluster", expression, **CLUSTER) == "conductor_app.db.postgresql statement_timeout=60000 1"


def test_sqlite_keeps_every_commit_unless_it_is_told_otherwise(loaded):
    pragma = "settings.DATABASES['default']['OPTIONS']['init_command']"

    assert "synchronous=FULL" in loaded("embedded", pragma)
    assert "synchronous=NORMAL" in loaded("embedded", pragma, SQLITE_SYNCHRONOUS="NORMAL")
    assert "SQLITE_SYNCHRONOUS='OFF' is refused" in loaded("embedded", pragma, SQLITE_SYNCHRONOUS="OFF")


@pytest.mark.parametrize("profile", ["cluster", "embedded"])
def test_the_host_of_artifacts_is_allowed_and_compared_in_small_letters(loaded, profile):
    expression = "settings.CONDUCTOR_ARTIFACT_URL, 'files.example.net' in settings.ALLOWED_HOSTS"

    assert loaded(profile, expression, **CLUSTER, ARTIFACT_URL="https://Files.example.net:8443/") == (
        "https://files.example.net:8443 True"
    )


@pytest.mark.parametrize("url", ["https://files.example.net/a", "https://me@files.example.net", "files.example.net"])
def test_an_artifact_host_is_an_address_without_further_parts(loaded, url):
    assert "ARTIFACT_URL is refused" in loaded("embedded", ARTIFACT_URL=url)
