"""Fixtures of the scenarios."""

import pytest


@pytest.fixture(autouse=True)
def _database(db):
    """Let each scenario use the database."""
