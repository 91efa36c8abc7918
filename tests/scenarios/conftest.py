"""Fixtures of the scenarios."""

import pytest

from tests.scenario import clear_process_caches


@pytest.fixture(autouse=True)
def _fresh(db):
    clear_process_caches()
