"""The distributions of this checkout."""

from pathlib import Path

import pytest

from . import distributions


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    return distributions.build(distributions.ROOT, tmp_path_factory.mktemp("wheel"), "wheel")
