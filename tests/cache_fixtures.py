"""Assertions of shared helpers are explained, like those of tests."""

import pytest

pytest.register_assert_rewrite("tests.engine.random_workers")
