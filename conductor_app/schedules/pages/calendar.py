"""The schedule calendar of a week or a day: past and upcoming slots, as a list or as a lane per schedule."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import get_current_timezone, get_current_timezone_name
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...utils import clock
from ...utils.formatting import format_duration
from ...web.badges import exact_time, format_status, machine_time, status_tone
from ...web.links import run_address
from ...web.pages import Page
from ..models import EXECUTED, FAILED, WAITING
from ..queries import COMING, CalendarDay, CalendarEntry, CalendarLane, CalendarPeriod, calendar_period

WIDTH = 2000
MIN_WIDTH = 8
UPCOMING_TONE = "upcoming"


@dataclass(frozen=True, slots=True)
class LaneBar:
    """One bar: its place in units of WIDTH, its tone, its text, and its run if it stands for one."""

    x: int
    width: int
    tone: str
    text: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class DrawnLane:
    """One row. `summary`: its bars as text."""

    name: str
    address: str
    summary: str
    bars: Sequence[LaneBar]


def draw_lanes(period: CalendarPeriod) -> list[DrawnLane]:
    """Return the rows with the bars of a period."""
    return [
        DrawnLane(
            lane.name,
            reverse("admin:conductor_schedule_change", args=[lane.pk]) if lane.pk else "",
            _summary(lane),
            list(_merge_bars(_bar(entry, period) for entry in lane.entries)),
        )
        for lane in period.lanes
    ]


def place_of(moment: int, period: CalendarPeriod) -> int:
    """Return the horizontal place of a time, in units of WIDTH."""
    share = (moment - period.begin) / (period.end - period.begin)
    return round(min(max(share, 0), 1) * WIDTH)


def _bar(entry: CalendarEntry, period: CalendarPeriod) -> LaneBar:
    x = min(place_of(entry.at, period), WIDTH - MIN_WIDTH)
    width = max(place_of(entry.end or entry.at, period) - x, MIN_WIDTH)
    address = run_address(entry.run_id) if entry.run_id else ""
    return LaneBar(x, width, _tone(entry), _bar_text(entry), address)


def _tone(entry: CalendarEntry) -> str:
    if entry.state == COMING:
        return UPCOMING_TONE
    if entry.status:
        return status_tone(entry.status)
    return {FAILED: "failed", WAITING: "waiting"}.get(entry.state, "removed")


def _bar_text(entry: CalendarEntry) -> str:
    if entry.is_open:
        return _("multiple")
    duration = format_duration(entry.end - entry.at) if entry.end > entry.at else ""
    if entry.state == COMING:
        expected = _("upcoming, usually %(span)s") % {"span": duration} if duration else _("upcoming")
        return f"{exact_time(entry.at)}: {expected}"
    states = {FAILED: _("not started"), WAITING: _("waiting")}
    state = format_status(entry.status) if entry.status else states.get(entry.state, _("run removed"))
    return f"{exact_time(entry.at)}: {', '.join(filter(None, (state, duration)))}"


def _merge_bars(bars: Iterable[LaneBar]) -> Iterator[LaneBar]:
    """Merge bars of one tone that touch, so that a frequent schedule remains a small drawing."""
    held: LaneBar | None = None
    count = 1
    for bar in bars:
        if held is not None and bar.tone == held.tone and bar.x <= held.x + held.width:
            count += 1
            width = max(held.width, bar.x + bar.width - held.x)
            held = LaneBar(held.x, width, held.tone, _("%(count)s slots") % {"count": count})
            continue
        if held is not None:
            yield held
        held, count = bar, 1
    if held is not None:
        yield held


def _summary(lane: CalendarLane) -> str:
    """Return the number of bars per state, for screen readers."""
    tones = sorted(_tone(entry) for entry in lane.entries)
    counts = {tone: len(list(same)) for tone, same in groupby(tones)}
    upcoming, failed = counts.get(UPCOMING_TONE, 0), counts.get("failed", 0)
    past = len(tones) - upcoming
    parts = [
        ngettext("%(n)s past slot", "%(n)s past slots", past) % {"n": past},
        _("%(n)s failed") % {"n": failed},
        _("%(n)s upcoming") % {"n": upcoming},
    ]
    return f"{lane.name}: {', '.join(parts)}"


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

    name, title, template = "schedule_calendar", gettext_lazy("Schedule calendar"), "ops/schedules/week.html"
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
