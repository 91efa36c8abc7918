"""Periods of budgets are days, weeks and months in UTC."""

from datetime import UTC, datetime

import pytest

from conductor_app.core.ai import period_bounds
from conductor_app.core.snapshot import NEVER


def moment(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("period", "now", "begin", "end"),
    [
        ("DAY", "2027-03-01T00:00:00", "2027-03-01", "2027-03-02"),
        ("DAY", "2027-03-01T23:59:59.999", "2027-03-01", "2027-03-02"),
        ("WEEK", "2027-03-01T12:00:00", "2027-03-01", "2027-03-08"),
        ("WEEK", "2027-02-28T23:59:59", "2027-02-22", "2027-03-01"),
        ("MONTH", "2027-12-31T23:59:59.999", "2027-12-01", "2028-01-01"),
        ("MONTH", "2028-02-29T00:00:00", "2028-02-01", "2028-03-01"),
    ],
)
def test_a_period_begins_and_ends_at_midnight(period, now, begin, end):
    assert period_bounds(period, moment(now)) == (moment(begin), moment(end))


def test_the_period_of_a_run_has_no_end():
    assert period_bounds("RUN", moment("2027-03-01")) == (0, NEVER)
