"""Times at which an alert fires."""

import pytest

from conductor_app.core.alerts import (
    ABSENCE,
    AGE,
    COUNT,
    MINUTE_MS,
    SHARE,
    AlertRule,
    find_alert_times,
    measure_at,
)

HOUR = 60 * MINUTE_MS


@pytest.mark.parametrize(
    ("kind", "threshold", "hits", "total", "fires"),
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
def test_each_kind_has_its_condition(kind, threshold, hits, total, fires):
    assert AlertRule(kind, threshold, HOUR, HOUR).is_met(hits, total) is fires


def test_an_alert_fires_when_its_window_reaches_the_threshold_and_again_after_its_pause():
    rule = AlertRule(COUNT, 2, 10 * MINUTE_MS, 30 * MINUTE_MS)
    hits = [5 * MINUTE_MS, 8 * MINUTE_MS, 9 * MINUTE_MS, 45 * MINUTE_MS, 50 * MINUTE_MS]

    alert_times = find_alert_times(rule, hits, [], 0, 60 * MINUTE_MS)

    assert alert_times == [(8 * MINUTE_MS, 2), (50 * MINUTE_MS, 2)]


def test_sentences_describe_the_measured_value():
    assert AlertRule(SHARE, 20, HOUR, HOUR).sentence(1, 4) == "1 of 4 runs in the last 60 min: 25 % (threshold: 20 %)"
    assert AlertRule(ABSENCE, 1, HOUR, HOUR).sentence(0, 0) == "0 in the last 60 min (threshold: fewer than 1)"


def test_an_age_alert_fires_while_a_run_is_open_for_too_long():
    rule = AlertRule(AGE, 30, HOUR, 20 * MINUTE_MS)
    too_old, ended = [10 * MINUTE_MS], [35 * MINUTE_MS]

    assert rule.is_met(1, 0) and not rule.is_met(0, 0)
    assert [at // MINUTE_MS for at, _ in find_alert_times(rule, too_old, ended, 0, HOUR)] == [10, 30]
    assert rule.sentence(2, 0) == "2 open for 30 min or longer"


@pytest.mark.parametrize(
    ("kind", "values"),
    [(COUNT, [0, 2, 1, 0]), (ABSENCE, [0, 2, 1, 0]), (SHARE, [0, 50, 100, 0]), (AGE, [0, 1, 0, 0])],
)
def test_the_measured_value_is_the_one_that_is_compared_with_the_threshold(kind, values):
    rule = AlertRule(kind, 1, 10 * MINUTE_MS, HOUR)
    hits = [5 * MINUTE_MS, 8 * MINUTE_MS, 15 * MINUTE_MS]
    total = [5 * MINUTE_MS, 6 * MINUTE_MS, 8 * MINUTE_MS, 9 * MINUTE_MS, 15 * MINUTE_MS]
    if kind == AGE:
        hits, total = [5 * MINUTE_MS], [12 * MINUTE_MS]

    measured = measure_at(rule, hits, total, [0, 10 * MINUTE_MS, 20 * MINUTE_MS, 40 * MINUTE_MS])

    assert measured == values
