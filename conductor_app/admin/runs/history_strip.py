"""A history strip: one bar per run, oldest first, whose height is the duration and whose color is the result."""

from collections.abc import Sequence
from math import sqrt

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext

from ...insight.durations import format_duration
from ...insight.runs.recent_runs import STRIP_LENGTH, RecentRun
from ..badges import exact_time, format_status, status_tone

BAR_WIDTH, HEIGHT, LEAST = 6, 28, 4


def history_strip(runs: Sequence[RecentRun], now: int, is_in_list: bool = True) -> SafeString:
    """Return the strip. The links of a strip in a list are not stops of the Tab key, because there are too many."""
    if not runs:
        return mark_safe('<span class="muted">–</span>')
    longest = longest_duration(runs, now)
    first = STRIP_LENGTH - len(runs)
    bars = (
        (
            reverse("admin:conductor_run_change", args=[run.id]),
            mark_safe(' tabindex="-1"') if is_in_list else "",
            describe_run(run, now),
            place * BAR_WIDTH,
            HEIGHT,
            status_tone(run.status),
            place * BAR_WIDTH + 0.5,
            HEIGHT - height,
            height,
        )
        for place, run in enumerate(runs, first)
        for height in [bar_height(run.duration_ms(now), longest, HEIGHT)]
    )
    drawn = format_html_join(
        "",
        '<a href="{}"{}><title>{}</title><rect class="room" x="{}" width="6" height="{}"></rect>'
        '<rect class="{}" x="{}" y="{}" width="5" height="{}" rx="1"></rect></a>',
        bars,
    )
    width = STRIP_LENGTH * BAR_WIDTH
    return format_html(
        '<svg class="strip" width="{}" height="{}" role="group" aria-label="{}">{}</svg>',
        width,
        HEIGHT,
        _summarize(runs),
        drawn,
    )


def describe_run(run: RecentRun, now: int) -> str:
    """Return status, duration, version and start of a run in one line."""
    facts = (format_status(run.status), format_duration(run.duration_ms(now)), f"v{run.version}")
    return " · ".join((*facts, exact_time(run.created_at)))


def longest_duration(runs: Sequence[RecentRun], now: int) -> int:
    """Return the duration of the highest bar: of the runs that ended, because one that waits would hide the others."""
    ended = [run.duration_ms(now) for run in runs if run.ended_at is not None]
    return max(ended or [run.duration_ms(now) for run in runs]) or 1


def bar_height(duration_ms: int, longest_ms: int, height: int) -> int:
    """Return the height of a bar. It grows with the square root, so that short runs beside long ones stay visible."""
    return max(round(height * sqrt(min(duration_ms / longest_ms, 1))), LEAST)


def _summarize(runs: Sequence[RecentRun]) -> str:
    failed = sum(status_tone(run.status) == "failed" for run in runs)
    text = ngettext("Last run, %(failed)s failed", "Last %(count)s runs, %(failed)s failed", len(runs))
    return text % {"count": len(runs), "failed": failed}
