"""The schedule calendar: past and upcoming slots of a week or a day."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.timezone import get_current_timezone, get_current_timezone_name
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ... import clock
from ...insight.schedules.schedule_calendar import COMING, CalendarDay, CalendarEntry, CalendarPeriod, calendar_period
from ...models.schedules import EXECUTED, FAILED, WAITING
from ..badges import machine_time
from ..pages import Page
from .calendar_lanes import WIDTH, draw_lanes, place_of

WEEK_DAYS, HOUR_TICKS = 7, 8
STATE_MARKS = {
    EXECUTED: ("succeeded", "succeeded", gettext_lazy("started")),
    FAILED: ("failed", "failed", gettext_lazy("not started")),
    WAITING: ("waiting", "waiting", gettext_lazy("waiting")),
    COMING: ("", "", ""),
}


@dataclass(frozen=True, slots=True)
class CalendarLine:
    """One line of a day in the calendar."""

    entry: CalendarEntry
    clock: str
    iso_time: str
    group: str
    icon: str
    word: str

    @property
    def count_text(self) -> str:
        """Return the number of slots that the line represents."""
        if self.entry.is_open:
            return _("multiple")
        return f"{self.entry.count:,}×" if self.entry.count > 1 else ""


class CalendarPage(Page):
    """Calendar of seven days, or of one, with all schedules."""

    name, title, template = "schedule_calendar", gettext_lazy("Schedule calendar"), "ops/schedule/week.html"
    permission = "conductor.view_schedule"

    def get_context(self, request: HttpRequest) -> dict[str, Any]:
        zone, now = get_current_timezone(), clock.now()
        today = datetime.fromtimestamp(now / 1000, UTC).astimezone(zone).date()
        days = 1 if request.GET.get("days") == "1" else WEEK_DAYS
        first = _parse_date(request.GET.get("from", ""))
        first = first or (today if days == 1 else today - timedelta(days=today.weekday()))
        part = request.GET.get("name", "").replace("\0", "")[:255]
        found = calendar_period(first, days, zone, now, part)
        columns = HOUR_TICKS if days == 1 else days
        return {
            "days": [_calendar_line(day, today) for day in found.days],
            "lanes": draw_lanes(found),
            "ticks": _tick_labels(found, days),
            "lines": [WIDTH * number // columns for number in range(1, columns)],
            "now_at": place_of(now, found) if found.begin <= now < found.end else None,
            "unread": found.unreadable,
            "is_cut": found.is_cut,
            "name": part,
            "is_week": days == WEEK_DAYS,
            "day_count": days,
            "from": first.isoformat(),
            "before": (first - timedelta(days=days)).isoformat(),
            "after": (first + timedelta(days=days)).isoformat(),
            "zone_shown": get_current_timezone_name(),
        }


def _tick_labels(period: CalendarPeriod, days: int) -> list[tuple[str, str]]:
    """Return the label of each column, and the date of a day for its link: days of a week, or every third hour."""
    if days == 1:
        return [(f"{hour:02}:00", "") for hour in range(0, 24, 3)]
    return [(date_format(day.date, "D j"), day.date.isoformat()) for day in period.days]


def _parse_date(text: str) -> date | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if 1971 <= found.year <= 2999 else None


def _calendar_line(day: CalendarDay, today: date) -> dict[str, Any]:
    return {
        "words": date_format(day.date, "D j M"),
        "is_today": day.date == today,
        "note": _("the clocks go forward") if day.hours < 24 else _("the clocks go back") if day.hours > 24 else "",
        "lines": [_entry_line(entry) for entry in day.entries],
        "more": day.more,
    }


def _entry_line(entry: CalendarEntry) -> CalendarLine:
    group, icon, word = STATE_MARKS[entry.state]
    at = datetime.fromtimestamp(entry.at / 1000, UTC).astimezone(get_current_timezone())
    return CalendarLine(entry, f"{at:%H:%M}", machine_time(entry.at), group, icon, str(word))
