"""Each scenario is told to a process that remembers no other."""

import pytest

from tests.scenario import clear_process_caches


@pytest.fixture(autouse=True)
def _fresh(db):
    clear_process_caches()
