"""Progress bar of a group: completed, failed and running tasks."""

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ...insight.standalone.task_groups.progress import GroupProgress
from ..badges import ACTIVE, SUCCEEDED, format_count, status_tone

WAITING_TONE = "waiting"


def progress_bar(tally: GroupProgress) -> SafeString:
    """Return the bar with the shares of all states except waiting."""
    parts, left = [], 0.0
    for tone, count in _tone_shares(tally):
        width = 100 * count / tally.total
        parts.append((tone, f"{left:.2f}%", f"{width:.2f}%"))
        left += width
    rects = format_html_join("", '<rect class="{}" x="{}" width="{}" height="8"></rect>', parts)
    label = _("%(resolved)s of %(total)s tasks are resolved") % {
        "resolved": format_count(tally.resolved),
        "total": format_count(tally.total),
    }
    return format_html(
        '<svg class="progress" width="100%" height="8" role="img" aria-label="{}">'
        '<rect width="100%" height="8"></rect>{}</svg>',
        label,
        rects,
    )


def _tone_shares(tally: GroupProgress) -> list[tuple[str, int]]:
    """Return the number of tasks per color. Without counts per state, return the number of resolved tasks."""
    if not tally.states:
        return [(SUCCEEDED, tally.resolved)] if tally.total else []
    counts: dict[str, int] = {}
    for state, count in tally.parts:
        counts[status_tone(state)] = counts.get(status_tone(state), 0) + count
    order = sorted(counts, key=lambda tone: (tone != SUCCEEDED, tone == ACTIVE))
    return [(tone, counts[tone]) for tone in order if tone != WAITING_TONE]
