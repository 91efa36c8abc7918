"""The profiles, loaded as a process loads them."""

import os
import subprocess
import sys

import pytest

CLUSTER = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "SECRET_KEY": "for tests",
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
        done = subprocess.run([sys.executable, "-c", program], env=bare | given, capture_output=True, text=True)
        return (done.stdout or done.stderr.splitlines()[-1]).strip()

    return load


@pytest.mark.parametrize("missing", sorted(CLUSTER))
def test_a_cluster_refuses_to_start_without_each_of_its_variables(loaded, missing):
    rest = {name: value for name, value in CLUSTER.items() if name != missing}

    assert f"ImproperlyConfigured: {missing} is not set." in loaded("cluster", **rest)


def test_a_cluster_requires_a_token_and_notifies_over_redis(loaded):
    told = loaded("cluster", "settings.CONDUCTOR_API_ACCESS, settings.CONDUCTOR_WAKEUPS", **CLUSTER)

    assert told == "token conductor_app.notifications.redis"


def test_a_cluster_rejects_an_invalid_redis_address(loaded):
    assert "REDIS_URL is refused" in loaded("cluster", **CLUSTER | {"REDIS_URL": "127.0.0.1:6379"})


def test_a_single_machine_on_loopback_requires_no_login(loaded):
    told = loaded("embedded", "settings.CONDUCTOR_API_ACCESS, settings.ALLOWED_HOSTS")

    assert told == "open ['localhost', '127.0.0.1', '[::1]']"


def test_a_reachable_single_machine_requires_a_token_and_allowed_hosts(loaded):
    assert "ALLOWED_HOSTS is not set" in loaded("embedded", HOST="0.0.0.0")
    told = loaded(
        "embedded",
        "settings.CONDUCTOR_API_ACCESS, settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS",
        HOST="0.0.0.0",
        ALLOWED_HOSTS="conductor.example.org",
    )
    assert told == "token ()"
