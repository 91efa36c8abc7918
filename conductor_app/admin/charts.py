"""Small bar charts as SVG. Geometry is set in attributes because the content security policy forbids inline styles."""

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _


def sparkline(values: Sequence[int], label: str, css_class: str = "") -> SafeString:
    """Return one bar per value, scaled to the highest value."""
    highest = max([*values, 1])
    bars = [
        (css_class if value else "faint", place * 10, 100 - height, height)
        for place, value in enumerate(values)
        for height in [max(round(96 * value / highest), 8) if value else 4]
    ]
    rects = format_html_join("", '<rect class="{}" x="{}" y="{}" width="8" height="{}"></rect>', bars)
    return format_html(
        '<svg class="spark" viewBox="0 0 {} 100" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        len(values) * 10,
        f"{label}: {', '.join(map(str, values))}",
        rects,
    )


def stacked_bars(rows: Sequence[tuple[str, Sequence[int]]], label: str) -> SafeString:
    """Return groups of bars, one bar per row at each time."""
    highest = max([value for __, values in rows for value in values] or [0]) or 1
    width = len(rows) * 4 + 2
    bars = [
        (css_class, place * width + at * 4, 100 - height, height)
        for at, (css_class, values) in enumerate(rows)
        for place, value in enumerate(values)
        if value
        for height in [max(round(98 * value / highest), 2)]
    ]
    rects = format_html_join("", '<rect class="{}" x="{}" y="{}" width="4" height="{}"></rect>', bars)
    count = max((len(values) for _, values in rows), default=1)
    return format_html(
        '<svg class="chart" viewBox="0 0 {} 100" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        count * width,
        _("%(chart)s; highest bar: %(highest)s") % {"chart": label, "highest": highest},
        rects,
    )


def comparison_bars(hours: Sequence[tuple[str, str, int, int]], label: str, css_class: str = "") -> SafeString:
    """Return one bar per hour in front of the bar of the same hour one week before.

    `hours`: label, link, count, and count of one week before.
    """
    highest = max([*(max(now, then) for *__, now, then in hours), 1])
    rects = format_html_join(
        "",
        '<a href="{}" tabindex="-1"><title>{}</title><rect class="room" x="{}" y="0" width="10" height="100"></rect>'
        '<rect class="before" x="{}" y="{}" width="8" height="{}"></rect>'
        '<rect class="{}" x="{}" y="{}" width="4" height="{}"></rect></a>',
        (
            (address, name, at * 10, at * 10 + 1, 100 - then, then, css_class, at * 10 + 3, 100 - now, now)
            for at, (name, address, count, before) in enumerate(hours)
            for now, then in [(_bar_height(count, highest), _bar_height(before, highest))]
        ),
    )
    return format_html(
        '<svg class="against" viewBox="0 0 {} 100" preserveAspectRatio="none" role="group" aria-label="{}">{}</svg>',
        len(hours) * 10,
        label,
        rects,
    )


def _bar_height(count: int, highest: int) -> int:
    return max(round(96 * count / highest), 3) if count else 0
