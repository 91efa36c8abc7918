"""Byte ranges (RFC 9110 §14)."""

import pytest

from conductor_app.taskcluster.api.base import parse_range

PARTS = {
    "bytes=0-0": range(1), "bytes=2-4": range(2, 5), "bytes=8-": range(8, 10), "bytes=-3": range(7, 10),
    "bytes=7-99": range(7, 10), "bytes=-99": range(10), " bytes=0-9 ": range(10),
}  # fmt: skip


@pytest.mark.parametrize("asked", PARTS)
def test_a_range_is_returned(asked):
    assert parse_range(asked, 10) == PARTS[asked]


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_after_the_end_is_empty(asked):
    assert not parse_range(asked, 10)
    assert parse_range(asked, 10) is not None


@pytest.mark.parametrize("asked", ["", "bytes=-", "bytes=4-2", "bytes=0-1,3-4", "lines=1-2", "bytes=a-b", "bytes=²-"])
def test_an_invalid_range_is_ignored(asked):
    assert parse_range(asked, 10) is None
