"""Each test meets a process that remembers no other."""

import pytest

pytest.register_assert_rewrite("tests.engine.chance")

from tests.story import forget_all_that_was_seen  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh():
    forget_all_that_was_seen()
