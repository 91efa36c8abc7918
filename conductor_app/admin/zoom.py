"""Zoom links of a timeline."""

from collections.abc import Callable
from typing import Any

from ..insight.runs.time_scale import TimeScale


def zoom_links(scale: TimeScale, full_scale: TimeScale, address: Callable[..., str]) -> dict[str, Any]:
    """Return the links to zoom in, out and fit, and the points that a drag over the axis needs.

    `address`: builds the address of the page with other `from` and `to` parameters, in milliseconds since the start of
    the whole.
    """
    origin = full_scale.begin
    begin, end = scale.begin - origin, scale.end - origin
    quarter = (end - begin) // 4
    return {
        "points": axis_points(scale, origin),
        "in": address(**{"from": scale.moment_at(25) - origin, "to": scale.moment_at(75) - origin}) if quarter else "",
        "out": address(**{"from": max(begin - quarter, 0), "to": end + quarter}),
        "fit": address(**{"from": None, "to": None}),
    }


def axis_points(scale: TimeScale, origin: int) -> str:
    """Return positions in percent and times in milliseconds since `origin`: `0.00:0,47.20:19000,100.00:640000`."""
    return ",".join(f"{percent:.2f}:{moment - origin}" for percent, moment in scale.points())
