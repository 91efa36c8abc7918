"""Drawing of an alert's last seven days: the measured value, the threshold, and when the alert would have fired."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil

from django.utils.formats import date_format
from django.utils.timezone import get_current_timezone

from ...core.alerts import ABSENCE
from ...insight.failures.alerts import BackTest

WIDTH, HEIGHT, TOP = 1000, 140, 8
MAX_MARKS = 100


@dataclass(frozen=True, slots=True)
class AlertChart:
    """Places in a drawing of WIDTH x HEIGHT. `breached_y`, `breached_height`: the part where the condition is met.

    `days`: the place of each midnight, the same in percent, and its date. `most`: the value at the top.
    """

    line: str
    area: str
    limit_y: int
    limit: int
    breached_y: int
    breached_height: int
    marks: list[int]
    days: list[tuple[int, str, str]]
    most: int


def draw_chart(tested: BackTest, kind: str) -> AlertChart:
    """Return the drawing of a back-test."""
    most = _round_up(max([value for _, value in tested.points] + [tested.limit]))
    places = [(_x(at, tested), _y(value, most)) for at, value in tested.points]
    line = " ".join(f"{x},{y}" for x, y in places)
    limit_y = _y(tested.limit, most)
    is_below = kind == ABSENCE
    return AlertChart(
        line=line,
        area=f"0,{HEIGHT} {line} {WIDTH},{HEIGHT}",
        limit_y=limit_y,
        limit=tested.limit,
        breached_y=limit_y if is_below else 0,
        breached_height=HEIGHT - limit_y if is_below else limit_y,
        marks=[_x(at, tested) for at, _ in tested.firings[:MAX_MARKS]],
        days=_midnights(tested),
        most=most,
    )


def _x(at: int, tested: BackTest) -> int:
    return round(WIDTH * (at - tested.begin) / (tested.end - tested.begin))


def _y(value: float, most: int) -> int:
    return round(HEIGHT - (HEIGHT - TOP) * value / most)


def _round_up(value: float) -> int:
    """Return the next number of the form 1, 2 or 5 times a power of ten, so that the axis has a round end."""
    power = 10 ** (len(str(ceil(value))) - 1) if value > 1 else 1
    return next(each * power for each in (1, 2, 5, 10) if each * power >= value)


def _midnights(tested: BackTest) -> list[tuple[int, str, str]]:
    zone = get_current_timezone()
    day = datetime.fromtimestamp(tested.begin / 1000, UTC).astimezone(zone).date()
    found = []
    for number in range(1, 8):
        midnight = datetime.combine(day + timedelta(days=number), datetime.min.time(), zone)
        at = round(midnight.timestamp() * 1000)
        if at < tested.end:
            x = _x(at, tested)
            found.append((x, f"{100 * x / WIDTH:g}%", date_format(midnight, "D j")))
    return found
