"""Cron expressions in words."""

import pytest

from conductor_app.core.errors import Invalid
from conductor_app.schedules.pages.form import describe_cron

DESCRIPTIONS = {
    "*/30 * * * * *": "Every 30 seconds",
    "30 * * * * *": "At 30 seconds past the minute",
    "0 0/15 8-17 * * MON-FRI": "Every 15 minutes, between 08:00 and 17:59, Monday through Friday",
    "0 0 * * * *": "Every hour",
    "0 30 8-17 * * *": "At 30 minutes past the hour, between 08:00 and 17:59",
    "0 0 8,20 * * *": "At 08:00 and 20:00",
    "15 30 9 * * *": "At 09:30:15",
    # Sunday is 0 and 7, as in Spring.
    "0 0 6 ? * 7": "At 06:00, only on Sunday",
    "0 0 6 ? * 0": "At 06:00, only on Sunday",
    "0 0 22 * * 1-5": "At 22:00, Monday through Friday",
    "0 0 6 ? * mon#2": "At 06:00, on the second Monday of the month",
    "0 0 6 ? * FRIL": "At 06:00, on the last Friday of the month",
    "0 0 6 1,15 * *": "At 06:00, on day 1 and 15 of the month",
    "0 0 6 L * ?": "At 06:00, on the last day of the month",
    "0 0 6 L-3 * ?": "At 06:00, 3 days before the last day of the month",
    "0 0 6 15W * ?": "At 06:00, on the weekday nearest day 15 of the month",
    # Spring requires both fields to match.
    "0 0 6 1 * MON": "At 06:00, on day 1 of the month, only on Monday",
    "0 0 9 1 */3 *": "At 09:00, on day 1 of the month, every 3 months",
    "0 0 0 24 dec *": "At 00:00, on day 24 of the month, only in December",
    "@hourly": "Every hour",
    "@Midnight": "At 00:00",
    "@weekly": "At 00:00, only on Sunday",
    "@yearly": "At 00:00, on day 1 of the month, only in January",
}


@pytest.mark.parametrize("expression", DESCRIPTIONS)
def test_an_expression_is_described_in_words(expression):
    assert describe_cron(expression) == DESCRIPTIONS[expression]


@pytest.mark.parametrize(
    "expression",
    [
        "0 */25 * * * *", "0 5/25 * * * *", "0 0 6 */2 * *", "0 0 6 15,L * ?", "0 0 6 ? * MON,FRIL",
        "0 1-30/2,32-59/3 * * * *", "*/5,*/7 * * * * *",
    ],
)  # fmt: skip
def test_an_expression_that_words_would_distort_is_not_described(expression):
    assert describe_cron(expression) == ""


@pytest.mark.parametrize("expression", ["", "* * * * *", "0 0 0 * * MONDAY", "0 0 0 32 * *"])
def test_an_invalid_expression_is_refused(expression):
    with pytest.raises(Invalid, match="cron expression"):
        describe_cron(expression)
