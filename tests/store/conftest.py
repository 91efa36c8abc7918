"""Each test meets a process that remembers no other."""

import pytest

from tests.scenario import clear_process_caches


@pytest.fixture(autouse=True)
def _fresh():
    clear_process_caches()
