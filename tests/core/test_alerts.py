"""When an alert rings, and when it would have."""

import pytest

from conductor_app.core.alerts import ABSENCE, COUNT, MINUTE_MS, SHARE, Rule, would_ring

HOUR = 60 * MINUTE_MS


@pytest.mark.parametrize(
    ("kind", "threshold", "hits", "total", "rings"),
    [
        (COUNT, 3, 3, 0, True),
        (COUNT, 3, 2, 0, False),
        (ABSENCE, 1, 0, 0, True),
        (ABSENCE, 1, 1, 0, False),
        (SHARE, 50, 1, 2, True),
        (SHARE, 50, 1, 3, False),
        (SHARE, 50, 0, 0, False),
    ],
)
def test_each_kind_has_its_condition(kind, threshold, hits, total, rings):
    assert Rule(kind, threshold, HOUR, HOUR).is_met(hits, total) is rings


def test_it_rings_at_the_minute_in_which_its_window_holds_enough_and_again_after_its_pause():
    rule = Rule(COUNT, 2, 10 * MINUTE_MS, 30 * MINUTE_MS)
    hits = [5 * MINUTE_MS, 8 * MINUTE_MS, 9 * MINUTE_MS, 45 * MINUTE_MS, 50 * MINUTE_MS]

    found = would_ring(rule, hits, [], 0, 60 * MINUTE_MS)

    assert found == [(8 * MINUTE_MS, 2), (50 * MINUTE_MS, 2)]


def test_sentences_say_what_was_found():
    assert Rule(SHARE, 20, HOUR, HOUR).sentence(1, 4) == "1 of 4 runs in the last 60 min: 25 %, 20 % ring it"
    assert Rule(ABSENCE, 1, HOUR, HOUR).sentence(0, 0) == "0 in the last 60 min: fewer than 1 ring it"
