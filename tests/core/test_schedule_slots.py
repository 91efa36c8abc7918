"""Next slot of a schedule: several cron expressions, a time window and missed slots."""

import pytest

from conductor_app.core.cron import ScheduleSlot, parse_timetable
from tests.conftest import NOON

MINUTE, HOUR = 60_000, 3_600_000


def entry(expression: str, zone_id: str = "UTC") -> dict:
    return {"cronExpression": expression, "zoneId": zone_id}


def test_every_entry_has_slots_of_its_own():
    table = parse_timetable({"cronSchedules": [entry("0 0 * * * *"), entry("0 30 * * * *")]})

    assert [(slot.at - NOON, slot.entry) for slot in table.between(NOON, NOON + 2 * HOUR)] == [
        (0, 0),
        (30 * MINUTE, 1),
        (60 * MINUTE, 0),
        (90 * MINUTE, 1),
        (120 * MINUTE, 0),
    ]


def test_entries_with_a_common_slot_fire_one_after_the_other():
    table = parse_timetable({"cronSchedules": [entry("0 0 12 * * *"), entry("0 0 1 * * *"), entry("0 0 * * * *")]})

    assert table.following(ScheduleSlot(NOON, 0), NOON + 3 * HOUR) == ScheduleSlot(NOON, 2)
    assert table.following(ScheduleSlot(NOON, 2), NOON) == ScheduleSlot(NOON + HOUR, 2)


def test_a_list_of_cron_expressions_overrides_the_single_one():
    table = parse_timetable({**entry("0 0 0 1 1 *"), "cronSchedules": [entry("0 0 * * * *")]})

    assert table.after(NOON) == ScheduleSlot(NOON + HOUR, 0)


def test_start_and_end_are_inclusive():
    window = {"scheduleStartTime": NOON + HOUR, "scheduleEndTime": NOON + 2 * HOUR}
    table = parse_timetable({**entry("0 0 * * * *"), **window})

    assert [slot.at - NOON for slot in table.between(NOON, NOON + 9 * HOUR)] == [HOUR, 2 * HOUR]
    assert table.after(NOON + 2 * HOUR) is None


MISSED = {
    "missed slots are skipped": ({}, 5 * HOUR + 1, 6 * HOUR),
    "missed slots are caught up": ({"runCatchupScheduleInstances": True}, 5 * HOUR + 1, HOUR),
    "catch-up is limited by its window": (
        {"runCatchupScheduleInstances": True, "catchupWindowSeconds": 7200},
        5 * HOUR + 1,
        4 * HOUR,
    ),
}


@pytest.mark.parametrize(("fields", "elapsed", "expected"), MISSED.values(), ids=MISSED)
def test_a_late_slot_is_followed_by_the_catch_up_policy(fields, elapsed, expected):
    table = parse_timetable({**entry("0 0 * * * *"), **fields})

    assert table.following(ScheduleSlot(NOON, 0), NOON + elapsed) == ScheduleSlot(NOON + expected, 0)
