"""Each test meets a process that remembers no other."""

import pytest

pytest.register_assert_rewrite("tests.engine.random_workers")

from tests.scenario import clear_process_caches  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh():
    clear_process_caches()
