"""Durations in words."""

import pytest

from conductor_app.utils.formatting import format_duration


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (-5, "0 ms"),
        (320, "320 ms"),
        (3_290, "3.2 s"),
        (60_000, "1 min"),
        (725_000, "12 min 5 s"),
        (3 * 3_600_000 + 12 * 60_000 + 59_000, "3 h 12 min"),
        (2 * 86_400_000 + 4 * 3_600_000, "2 d 4 h"),
    ],
)
def test_a_duration_is_formatted_in_its_two_largest_units(milliseconds, words):
    assert format_duration(milliseconds) == words
