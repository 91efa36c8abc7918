"""What all commands against a server share: its address, keys and tokens, and errors."""

from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from conductor_app.tools.remote.folders import REMOTE_COMMANDS
from tests.clients.live_server import running_server


@pytest.fixture
def server(transactional_db, monkeypatch) -> Iterator[str]:
    """Yield the address of a live server, which is also that of the environment."""
    for name in ("CONDUCTOR_AUTH_KEY", "CONDUCTOR_AUTH_SECRET", "CONDUCTOR_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with running_server() as url:
        monkeypatch.setenv("CONDUCTOR_SERVER_URL", f"{url}/api")
        yield url


def execute(*arguments: str, input: str = "", expected: int = 0) -> Result:
    result = CliRunner().invoke(REMOTE_COMMANDS[arguments[0]], arguments[1:], input=input, env={"COLUMNS": "200"})
    assert result.exit_code == expected, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1/api", "connection refused"),
        ("ftp://example.org", "must begin with http:// or https://"),
        ("http://name.invalid/api", "cannot be resolved"),
    ],
)
def test_a_server_that_cannot_be_reached_is_an_error_without_a_trace(url, message):
    assert message in execute("drift", "--url", url, expected=1).output


def test_a_key_is_exchanged_for_a_token(server, settings, monkeypatch):
    from conductor_app.access.commands.applications import create_key_of

    key, secret = create_key_of("reader", ("USER",), "tester")
    settings.CONDUCTOR_API_ACCESS = "token"

    refused = execute("drift", expected=1).output
    monkeypatch.setenv("CONDUCTOR_AUTH_KEY", key)
    monkeypatch.setenv("CONDUCTOR_AUTH_SECRET", secret)

    assert "CONDUCTOR_AUTH_KEY" in refused
    execute("drift")
