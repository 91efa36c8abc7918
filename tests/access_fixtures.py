"""A server with logins."""

import pytest


@pytest.fixture
def with_logins(settings, transactional_db):
    """Require every caller to authenticate."""
    settings.CONDUCTOR_API_ACCESS = "token"
