"""What a process remembers of the database is forgotten between tests, as the database is."""

import pytest

from conductor_app.engine import plans, pollers


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins like a new process."""
    monkeypatch.setattr(plans, "_known", plans.Known(-1))
    monkeypatch.setattr(pollers, "_noted", {})
