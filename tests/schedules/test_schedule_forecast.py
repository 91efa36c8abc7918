"""Next slots of a schedule, with the changes of its time zone between them."""

from datetime import UTC, datetime

import pytest

from conductor_app.core.errors import Invalid
from conductor_app.schedules.queries import upcoming_slots


def to_milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def find_next_slots(expression: str, zone_id: str, now: str):
    return upcoming_slots({"cronExpression": expression, "zoneId": zone_id}, to_milliseconds(now))[:3]


def test_the_next_times_are_in_the_zone_of_the_schedule():
    found = find_next_slots("0 30 9 * * *", "Europe/Berlin", "2027-01-10T00:00")

    assert [each.local for each in found[:2]] == ["Sun 2027-01-10 09:30:00 +0100", "Mon 2027-01-11 09:30:00 +0100"]


def test_daylight_saving_changes_are_reported():
    spring = find_next_slots("0 30 9 * * *", "Europe/Berlin", "2027-03-27T00:00")
    autumn = find_next_slots("0 30 9 * * *", "Europe/Berlin", "2027-10-30T00:00")

    assert [each.note for each in spring] == ["", "clocks moved forward by 1 h since the previous slot", ""]
    assert [each.note for each in autumn] == ["", "clocks moved back by 1 h since the previous slot", ""]


def test_times_of_several_cron_expressions_are_merged_in_order():
    cron_schedules = [
        {"cronExpression": "0 0 12 * * *", "zoneId": "UTC"},
        {"cronExpression": "0 0 12 * * *", "zoneId": "Asia/Tokyo"},
    ]

    found = upcoming_slots({"cronSchedules": cron_schedules}, to_milliseconds("2027-01-10T00:00"))[:2]

    assert [each.zone_id for each in found] == ["Asia/Tokyo", "UTC"]


def test_invalid_values_are_rejected():
    with pytest.raises(Invalid):
        upcoming_slots({"cronExpression": "never"}, 0)


def test_an_ended_schedule_has_no_future_times():
    document = {"cronExpression": "0 0 * * * *", "scheduleEndTime": to_milliseconds("2027-01-01T00:00")}

    assert upcoming_slots(document, to_milliseconds("2027-01-02T00:00")) == []
