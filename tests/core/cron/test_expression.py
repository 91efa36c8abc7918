"""Cron expressions: the examples of Spring's documentation, and changes to and from daylight saving time."""

from datetime import datetime

import pytest

from conductor_app.core.cron import parse_cron, parse_zone
from conductor_app.core.errors import Invalid

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def to_milliseconds(text: str, zone_id: str = "UTC") -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=parse_zone(zone_id)).timestamp() * 1000)


def to_text(moment: int, zone_id: str) -> str:
    return datetime.fromtimestamp(moment / 1000, parse_zone(zone_id)).isoformat()


def next_slots(expression: str, start: str, count: int, zone_id: str = "UTC") -> list[str]:
    """Return the next slots as ISO texts, without the offset in UTC."""
    slots, at = [], to_milliseconds(start, zone_id)
    for _ in range(count):
        at = parse_cron(expression).after(at, parse_zone(zone_id))
        if at is None:
            break
        slots.append(to_text(at, zone_id))
    return [text.replace("+00:00", "") if zone_id == "UTC" else text for text in slots]


# 2027-03-01 is a Monday.
DOCUMENTED = {
    "every second": ("* * * * * *", "2027-03-01T00:00:00", ["2027-03-01T00:00:01", "2027-03-01T00:00:02"]),
    "the top of every hour": ("0 0 * * * *", "2027-03-01T00:00:00", ["2027-03-01T01:00:00", "2027-03-01T02:00:00"]),
    "every ten seconds": ("*/10 * * * * *", "2027-03-01T00:00:05", ["2027-03-01T00:00:10", "2027-03-01T00:00:20"]),
    "hours 8 to 10": (
        "0 0 8-10 * * *",
        "2027-03-01T08:00:00",
        ["2027-03-01T09:00:00", "2027-03-01T10:00:00", "2027-03-02T08:00:00"],
    ),
    "hours 6 and 19": ("0 0 6,19 * * *", "2027-03-01T06:00:00", ["2027-03-01T19:00:00", "2027-03-02T06:00:00"]),
    "half hours from 8 to 10": (
        "0 0/30 8-10 * * *",
        "2027-03-01T09:45:00",
        ["2027-03-01T10:00:00", "2027-03-01T10:30:00", "2027-03-02T08:00:00"],
    ),
    "nine to five on weekdays": (
        "0 0 9-17 * * MON-FRI",
        "2027-03-05T16:30:00",
        ["2027-03-05T17:00:00", "2027-03-08T09:00:00"],
    ),
    "christmas at midnight": ("0 0 0 25 DEC ?", "2027-03-01T00:00:00", ["2027-12-25T00:00:00", "2028-12-25T00:00:00"]),
    "the last day of the month": (
        "0 0 0 L * *",
        "2027-01-31T00:00:00",
        ["2027-02-28T00:00:00", "2027-03-31T00:00:00", "2027-04-30T00:00:00"],
    ),
    "the third to last day": ("0 0 0 L-3 * *", "2027-02-01T00:00:00", ["2027-02-25T00:00:00", "2027-03-28T00:00:00"]),
    "the last friday": ("0 0 0 * * 5L", "2027-03-01T00:00:00", ["2027-03-26T00:00:00", "2027-04-30T00:00:00"]),
    "the last thursday, named": ("0 0 0 * * THUL", "2027-03-01T00:00:00", ["2027-03-25T00:00:00"]),
    "the first weekday": (
        "0 0 0 1W * *",
        "2027-04-30T00:00:00",
        ["2027-05-03T00:00:00", "2027-06-01T00:00:00", "2027-07-01T00:00:00", "2027-08-02T00:00:00"],
    ),
    "the weekday nearest to the 15th": (
        "0 0 0 15W * *",
        "2027-05-01T00:00:00",
        ["2027-05-14T00:00:00", "2027-06-15T00:00:00", "2027-07-15T00:00:00", "2027-08-16T00:00:00"],
    ),
    "the weekday nearest to the 31st, never in another month": (
        "0 0 0 31W * *",
        "2027-07-01T00:00:00",
        ["2027-07-30T00:00:00", "2027-08-31T00:00:00", "2027-12-31T00:00:00"],
    ),
    "the last weekday of the month": (
        "0 0 0 LW * *",
        "2027-01-01T00:00:00",
        ["2027-01-29T00:00:00", "2027-02-26T00:00:00", "2027-03-31T00:00:00"],
    ),
    "the second friday": ("0 0 0 ? * 5#2", "2027-03-01T00:00:00", ["2027-03-12T00:00:00", "2027-04-09T00:00:00"]),
    "the first monday": ("0 0 0 ? * MON#1", "2027-03-01T00:00:00", ["2027-04-05T00:00:00", "2027-05-03T00:00:00"]),
    "a fifth monday, where there is one": (
        "0 0 0 * * MON#5",
        "2027-03-01T00:00:00",
        ["2027-03-29T00:00:00", "2027-05-31T00:00:00"],
    ),
    "a day of the month that is a friday as well": ("0 0 0 13 * FRI", "2027-03-01T00:00:00", ["2027-08-13T00:00:00"]),
    "sunday as 0": ("0 0 0 * * 0", "2027-03-01T00:00:00", ["2027-03-07T00:00:00"]),
    "sunday as 7": ("0 0 0 * * 7", "2027-03-01T00:00:00", ["2027-03-07T00:00:00"]),
    "a range that begins on sunday": (
        "0 0 0 * * SUN-TUE",
        "2027-03-01T12:00:00",
        ["2027-03-02T00:00:00", "2027-03-07T00:00:00", "2027-03-08T00:00:00"],
    ),
    "a step in a range": ("0 10-40/15 * * * *", "2027-03-01T00:00:00", ["2027-03-01T00:10:00", "2027-03-01T00:25:00"]),
    "rules and numbers in one list": (
        "0 0 0 1,L * *",
        "2027-03-01T00:00:00",
        ["2027-03-31T00:00:00", "2027-04-01T00:00:00"],
    ),
    "lower case": ("0 0 0 * jan mon", "2027-03-01T00:00:00", ["2028-01-03T00:00:00"]),
    "surrounding spaces": ("  0  0 12 * * *  ", "2027-03-01T00:00:00", ["2027-03-01T12:00:00"]),
    "29 February": ("0 0 0 29 2 *", "2027-03-01T00:00:00", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
    "a 29 February that is a monday": ("0 0 0 29 2 MON", "2072-03-01T00:00:00", ["2112-02-29T00:00:00"]),
    "yearly": ("@yearly", "2027-03-01T00:00:00", ["2028-01-01T00:00:00"]),
    "annually": ("@annually", "2027-03-01T00:00:00", ["2028-01-01T00:00:00"]),
    "monthly": ("@monthly", "2027-03-01T00:00:00", ["2027-04-01T00:00:00"]),
    "weekly": ("@weekly", "2027-03-01T00:00:00", ["2027-03-07T00:00:00"]),
    "daily": ("@daily", "2027-03-01T00:00:00", ["2027-03-02T00:00:00"]),
    "midnight": ("@Midnight", "2027-03-01T00:00:00", ["2027-03-02T00:00:00"]),
    "hourly": ("@hourly", "2027-03-01T00:00:00", ["2027-03-01T01:00:00"]),
}


@pytest.mark.parametrize(("expression", "start", "expected"), DOCUMENTED.values(), ids=DOCUMENTED)
def test_an_expression_matches_the_times_of_spring(expression, start, expected):
    assert next_slots(expression, start, len(expected)) == expected


DAYLIGHT_SAVING = {
    "a time that does not exist in spring, Berlin": (
        BERLIN,
        "0 30 2 * * *",
        "2027-03-27T12:00:00",
        ["2027-03-29T02:30:00+02:00"],
    ),
    "a time that does not exist in spring, New York": (
        NEW_YORK,
        "0 30 2 * * *",
        "2027-03-13T12:00:00",
        ["2027-03-15T02:30:00-04:00"],
    ),
    "every half hour over the gap": (
        BERLIN,
        "0 */30 * * * *",
        "2027-03-28T01:15:00",
        ["2027-03-28T01:30:00+01:00", "2027-03-28T03:00:00+02:00", "2027-03-28T03:30:00+02:00"],
    ),
    "the hour after the gap": (BERLIN, "0 0 3 * * *", "2027-03-27T12:00:00", ["2027-03-28T03:00:00+02:00"]),
    "a time that occurs twice in autumn, Berlin": (
        BERLIN,
        "0 30 2 * * *",
        "2027-10-30T12:00:00",
        ["2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00", "2027-11-01T02:30:00+01:00"],
    ),
    "a time that occurs twice in autumn, New York": (
        NEW_YORK,
        "0 30 1 * * *",
        "2027-11-06T12:00:00",
        ["2027-11-07T01:30:00-04:00", "2027-11-07T01:30:00-05:00", "2027-11-08T01:30:00-05:00"],
    ),
    "every twenty minutes in the overlap": (
        NEW_YORK,
        "0 */20 * * * *",
        "2027-11-07T01:30:00",
        ["2027-11-07T01:40:00-04:00", "2027-11-07T01:00:00-05:00", "2027-11-07T01:20:00-05:00"],
    ),
    "a time of day keeps its hour through the year": (
        BERLIN,
        "0 0 9 1 1,7 *",
        "2027-01-01T12:00:00",
        ["2027-07-01T09:00:00+02:00", "2028-01-01T09:00:00+01:00"],
    ),
    "a fixed offset has no daylight saving": (
        "+05:30",
        "0 30 2 * * *",
        "2027-03-27T12:00:00",
        ["2027-03-28T02:30:00+05:30"],
    ),
}


@pytest.mark.parametrize(("zone_id", "expression", "start", "expected"), DAYLIGHT_SAVING.values(), ids=DAYLIGHT_SAVING)
def test_daylight_saving_skips_and_repeats_slots(zone_id, expression, start, expected):
    assert next_slots(expression, start, len(expected), zone_id) == expected


REFUSED = {
    "five fields": "* * * * *",
    "seven fields": "* * * * * * *",
    "empty": "",
    "an unknown macro": "@sometimes",
    "a range of days that wraps around": "0 0 0 * * SAT-MON",
    "a range of hours that wraps around": "0 0 22-2 * * *",
    "second 60": "60 * * * * *",
    "hour 24": "0 0 24 * * *",
    "day 0": "0 0 0 0 * *",
    "day 32": "0 0 0 32 * *",
    "month 13": "0 0 0 1 13 *",
    "weekday 8": "0 0 0 * * 8",
    "a step of zero": "*/0 * * * * *",
    "a missing step": "*/ * * * * *",
    "an empty entry": "1,,2 * * * * *",
    "a question mark in a field other than days": "? * * * * *",
    "an L followed by a number": "0 0 0 L5 * *",
    "L-0": "0 0 0 L-0 * *",
    "a W without a day": "0 0 0 W * *",
    "a W in a list of weekdays": "0 0 0 * * 1W",
    "an L without a weekday": "0 0 0 * * L",
    "a # without a number": "0 0 0 * * MON#",
    "the zeroth monday": "0 0 0 * * MON#0",
    "a full name of a weekday": "0 0 0 * * MONDAY",
    "non-ASCII digits": "٣ 0 0 * * *",
    "a sign": "+3 0 0 * * *",
    "words": "a b c d e f",
    "a long text": "0 0 0 * * " + ",".join(["1"] * 500),
}


@pytest.mark.parametrize("expression", REFUSED.values(), ids=REFUSED)
def test_an_expression_that_spring_refuses_is_refused_with_a_reason(expression):
    with pytest.raises(Invalid, match="cron expression"):
        parse_cron(expression)


def test_an_impossible_day_has_no_slot():
    assert parse_cron("0 0 0 31 2 *").after(to_milliseconds("2027-03-01T00:00:00"), parse_zone(BERLIN)) is None


def test_a_time_within_a_second_is_before_the_next_second():
    at = to_milliseconds("2027-03-01T00:00:00")

    assert parse_cron("* * * * * *").after(at - 1, parse_zone("UTC")) == at
    assert parse_cron("* * * * * *").after(at, parse_zone("UTC")) == at + 1000


@pytest.mark.parametrize("at", [-(2**63), 2**63 - 1])
def test_times_outside_of_the_calendar_are_handled(at):
    found = parse_cron("0 0 0 1 1 *").after(at, parse_zone(NEW_YORK))

    assert found is None or found > at


@pytest.mark.parametrize(
    "name", ["Europe/Atlantis", "../../etc/passwd", "Europe", "a\0b", "+19:00", "x" * 5000, "+5:99"]
)
def test_an_unknown_time_zone_is_refused(name):
    with pytest.raises(Invalid, match="time zone"):
        parse_zone(name)


@pytest.mark.parametrize(("name", "hours"), [("GMT+2", 2), ("UTC-03:30", -3.5), ("Z", 0), ("+0100", 1)])
def test_an_offset_is_a_zone(name, hours):
    assert parse_zone(name).utcoffset(datetime(2027, 7, 1)).total_seconds() == hours * 3600
