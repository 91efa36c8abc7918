"""A server with logins."""

import pytest

from conductor_app.access import tokens


@pytest.fixture
def with_logins(settings, transactional_db, monkeypatch):
    """Require every caller to authenticate."""
    settings.CONDUCTOR_API_ACCESS = "token"
    monkeypatch.setattr(tokens, "_verified_tokens", tokens.VerifiedTokens())
