"""Closer and wider looks at a timeline."""

from collections.abc import Callable
from typing import Any

from ..insight.timeline import TimeScale


def zoom_links(scale: TimeScale, whole: TimeScale, address: Callable[..., str]) -> dict[str, Any]:
    """The ways to a closer and a wider look, and what a drag over the axis needs to know.

    `address`: the same page with another `from` and `to`, in milliseconds since the whole began.
    """
    begin, end = scale.begin - whole.begin, scale.end - whole.begin
    quarter = (end - begin) // 4
    return {
        "begin": begin,
        "end": end,
        "in": address(**{"from": begin + quarter, "to": end - quarter}) if quarter else "",
        "out": address(**{"from": max(begin - quarter, 0), "to": end + quarter}),
        "fit": address(**{"from": None, "to": None}),
    }
