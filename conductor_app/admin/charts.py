"""Small charts: bars as SVG, whose geometry stands in attributes."""

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


def spark(values: Sequence[int], what: str, kind: str = "") -> SafeString:
    """A bar for each value, the highest as high as the picture."""
    highest = max([*values, 1])
    bars = [
        (kind if value else "faint", place * 10, 100 - height, height)
        for place, value in enumerate(values)
        for height in [max(round(96 * value / highest), 8) if value else 4]
    ]
    drawn = format_html_join("", '<rect class="{}" x="{}" y="{}" width="8" height="{}"></rect>', bars)
    return format_html(
        '<svg class="spark" viewBox="0 0 {} 100" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        len(values) * 10,
        f"{what}: {', '.join(map(str, values))}",
        drawn,
    )


def stacked(rows: Sequence[tuple[str, Sequence[int]]], what: str) -> SafeString:
    """Groups of bars side by side, one of each row for each moment."""
    highest = max([value for _, values in rows for value in values] or [0]) or 1
    width = len(rows) * 4 + 2
    bars = [
        (kind, place * width + at * 4, 100 - height, height)
        for at, (kind, values) in enumerate(rows)
        for place, value in enumerate(values)
        if value
        for height in [max(round(98 * value / highest), 2)]
    ]
    drawn = format_html_join("", '<rect class="{}" x="{}" y="{}" width="4" height="{}"></rect>', bars)
    count = max((len(values) for _, values in rows), default=1)
    return format_html(
        '<svg class="chart" viewBox="0 0 {} 100" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        count * width,
        f"{what}; the highest bar is {highest}",
        drawn,
    )
