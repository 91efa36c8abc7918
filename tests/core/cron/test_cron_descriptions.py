"""Descriptions of cron expressions in words."""

import pytest

from conductor_app.core.cron.words import describe_cron

DESCRIPTIONS = {
    "0 30 9 * * MON-FRI": "at 09:30, Monday to Friday",
    "0 0 * * * *": "every hour, on the hour",
    "0 15 * * * ?": "every hour, 15 minutes past",
    "0 */10 * * * *": "every 10 minutes",
    "0 * * * * *": "every minute",
    "* * * * * *": "every second",
    "0 0 */6 * * *": "at 00:00, 06:00, 12:00 and 18:00",
    "0 5 */2 * * *": "every 2 hours, at :05",
    "0 0 8,20 * * *": "at 08:00 and 20:00",
    "0 0 6 1 * *": "at 06:00, on day 1 of the month",
    "0 0 6 * * SUN,3": "at 06:00, on Sunday, Wednesday",
    "@daily": "at 00:00",
    "@weekly": "at 00:00, on Sunday",
}
NOT_DESCRIBED = ["0 0 6 L * ?", "0 0 6 * JAN *", "7,9 * * * * *", "0 1,17 * * * *", "0 0 6 ? * MON#2", "@yearly"]


@pytest.mark.parametrize("expression", DESCRIPTIONS)
def test_an_expression_is_described_in_plain_words(expression):
    assert describe_cron(expression) == DESCRIPTIONS[expression]


@pytest.mark.parametrize("expression", NOT_DESCRIBED)
def test_a_complex_expression_is_not_described(expression):
    assert describe_cron(expression) == ""
