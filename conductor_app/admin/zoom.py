"""Zoom links of a timeline."""

from collections.abc import Callable
from typing import Any

from ..insight.runs.timeline import TimeScale


def zoom_links(scale: TimeScale, full_scale: TimeScale, address: Callable[..., str]) -> dict[str, Any]:
    """Return the links to zoom in, out and fit, and the range that a drag over the axis needs.

    `address`: builds the address of the page with other `from` and `to` parameters, in milliseconds since the start of
    the whole.
    """
    begin, end = scale.begin - full_scale.begin, scale.end - full_scale.begin
    quarter = (end - begin) // 4
    return {
        "begin": begin,
        "end": end,
        "in": address(**{"from": begin + quarter, "to": end - quarter}) if quarter else "",
        "out": address(**{"from": max(begin - quarter, 0), "to": end + quarter}),
        "fit": address(**{"from": None, "to": None}),
    }
