"""A pool of one helper process."""

from collections.abc import Iterator

import pytest

from conductor_app.scripts.pool import Pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool(size=1)
    yield pool
    pool.close()
