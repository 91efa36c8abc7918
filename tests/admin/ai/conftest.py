"""Statement counts of pages."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext


@pytest.fixture
def statements_of(clock) -> Callable[[Callable[[], object]], int]:
    """Return a function that counts the statements of a call. The first call fills the caches."""

    def count(call: Callable[[], object]) -> int:
        call()
        with CaptureQueriesContext(connection) as captured:
            call()
        return len(captured)

    return count
