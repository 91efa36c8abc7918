"""The calendar as lanes: a row per schedule, with a bar from the start to the end of each run."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ...insight.durations import format_duration
from ...insight.schedules.schedule_calendar import COMING, CalendarEntry, CalendarLane, CalendarPeriod
from ...models.schedules import FAILED, WAITING
from ..badges import exact_time, format_status, status_tone
from ..runs.run_page import run_address

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
