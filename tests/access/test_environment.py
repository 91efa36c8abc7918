"""Access of definitions to environment variables of the server."""

from conductor_app.access.secrets import process_variables


def test_expressions_read_only_declared_environment_variables(monkeypatch):
    monkeypatch.setenv("CONDUCTOR_ENV_REGION", "eu")
    monkeypatch.setenv("NETFLIX_STACK", "blue")
    monkeypatch.setenv("CONDUCTOR_SECRET_PASSWORD", "hidden")

    seen = process_variables()

    assert (seen["REGION"], seen["NETFLIX_STACK"]) == ("eu", "blue")
    assert "PATH" not in seen and "hidden" not in seen.values()
