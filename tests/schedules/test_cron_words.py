"""Cron expressions in words."""

import pytest

from conductor_app.core.errors import Invalid
from conductor_app.schedules.cron_words import describe_cron

DESCRIPTIONS = {
    # Times
    "* * * * * *": "every second",
    "*/30 * * * * *": "every 30 seconds",
    "7,9 * * * * *": "at seconds 7 and 9",
    "10-20 * * * * *": "at seconds 10 to 20",
    "*/15 */20 * * * *": "every 15 seconds, in minutes 0, 20 and 40",
    "* 5 * * * *": "every second, in minute 5",
    "* * 8-17 * * *": "every second, from 08:00 to 17:59",
    "0 * * * * *": "every minute",
    "30 * * * * *": "every minute at second 30",
    "0 */10 * * * *": "every 10 minutes",
    "0 0/15 8-17 * * MON-FRI": "every 15 minutes, from 08:00 to 17:59, Monday to Friday",
    "0 1,17 * * * *": "in minutes 1 and 17",
    "0 5-10 * * * *": "in minutes 5 to 10",
    "0 */25 * * * *": "in minutes 0, 25 and 50",
    "0 * 8,12,20 * * *": "every minute, in hours 8, 12 and 20",
    "0 0 * * * *": "every hour",
    "0 15 * * * ?": "every hour at :15",
    "30 15 * * * ?": "every hour at :15:30",
    "0 0 */2 * * *": "every 2 hours",
    "0 5 */2 * * *": "every 2 hours at :05",
    "0 30 8-17 * * *": "every hour from 08:30 to 17:30",
    "0 0 */6 * * *": "at 00:00, 06:00, 12:00 and 18:00, every day",
    "0 0 8,20 * * *": "at 08:00 and 20:00, every day",
    "0 0,30 9,17 * * *": "at 09:00, 09:30, 17:00 and 17:30, every day",
    "15 30 9 * * *": "at 09:30:15, every day",
    "0 0 1,3,4,8,9,17,18 * * *": "at 01:00, 03:00, 04:00, 08:00, 09:00, 17:00 and 18:00, every day",
    # Days of the week
    "0 30 9 * * MON-FRI": "at 09:30, Monday to Friday",
    "0 0 22 * * 1-5": "at 22:00, Monday to Friday",
    "0 0 6 * * SUN,3": "at 06:00, on Wednesday and Sunday",
    "0 0 6 ? * 7": "at 06:00, on Sunday",
    "0 0 6 ? * 0": "at 06:00, on Sunday",
    "0 0 6 ? * SAT,SUN": "at 06:00, on Saturday and Sunday",
    "0 0 6 ? * SUN-TUE": "at 06:00, on Monday, Tuesday and Sunday",
    "0 0 6 ? * MON-FRI/2": "at 06:00, on Monday, Wednesday and Friday",
    "0 0 6 ? * mon#2": "at 06:00, on the second Monday of the month",
    "0 0 6 ? * 5L": "at 06:00, on the last Friday of the month",
    "0 0 6 ? * FRIL": "at 06:00, on the last Friday of the month",
    "0 0 6 ? * MON,FRIL": "at 06:00, on Monday and on the last Friday of the month",
    "0 0 6 ? * 1-7": "at 06:00, every day",
    # Days of the month
    "0 0 6 1 * *": "at 06:00, on day 1 of the month",
    "0 0 6 1,15 * *": "at 06:00, on days 1 and 15 of the month",
    "0 0 6 1-7 * *": "at 06:00, on days 1 to 7 of the month",
    "0 0 6 */2 * *": "at 06:00, every 2 days from day 1 of the month",
    "0 0 6 5/10 * *": "at 06:00, on days 5, 15 and 25 of the month",
    "0 0 6 L * ?": "at 06:00, on the last day of the month",
    "0 0 6 L-3 * ?": "at 06:00, 3 days before the last day of the month",
    "0 0 6 LW * ?": "at 06:00, on the last weekday of the month",
    "0 0 6 15W * ?": "at 06:00, on the weekday nearest to day 15 of the month",
    "0 0 6 15,L * ?": "at 06:00, on day 15 of the month and on the last day of the month",
    # Spring requires both fields to match.
    "0 0 6 1 * MON": "at 06:00, on day 1 of the month, but only on Monday",
    "0 0 6 1-7 * MON-FRI": "at 06:00, on days 1 to 7 of the month, but only Monday to Friday",
    # Months
    "0 0 6 * JAN *": "at 06:00, in January",
    "0 0 6 * 1,7 *": "at 06:00, in January and July",
    "0 0 9 1 */3 *": "at 09:00, on day 1 of January, April, July and October",
    "0 0 0 24 dec *": "at 00:00, on day 24 of December",
    "0 0 0 ? MAY MON#1": "at 00:00, on the first Monday of the month, in May",
    # Macros
    "@hourly": "every hour",
    "@daily": "at 00:00, every day",
    "@Midnight": "at 00:00, every day",
    "@weekly": "at 00:00, on Sunday",
    "@monthly": "at 00:00, on day 1 of the month",
    "@yearly": "at 00:00, on day 1 of January",
}


@pytest.mark.parametrize("expression", DESCRIPTIONS)
def test_an_expression_is_described_in_words(expression):
    assert describe_cron(expression) == DESCRIPTIONS[expression]


@pytest.mark.parametrize("expression", ["0 1-30/2,32-59/3 * * * *", "*/5,*/7 * * * * *", "0 0 6 1-20,22-30/2 * *"])
def test_an_expression_whose_description_would_be_longer_is_not_described(expression):
    assert describe_cron(expression) == ""


@pytest.mark.parametrize("expression", ["", "* * * * *", "0 0 0 * * MONDAY", "0 0 0 32 * *"])
def test_an_invalid_expression_is_refused(expression):
    with pytest.raises(Invalid, match="cron expression"):
        describe_cron(expression)
