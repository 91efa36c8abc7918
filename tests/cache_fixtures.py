"""Assertions of shared helpers are explained, like those of tests."""

import pytest

pytest.register_assert_rewrite("tests.runs.random_workers")
