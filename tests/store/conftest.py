"""Each test meets a process that remembers no other."""

import pytest

from tests.story import forget_all_that_was_seen


@pytest.fixture(autouse=True)
def _fresh():
    forget_all_that_was_seen()
