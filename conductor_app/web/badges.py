"""Small elements that every page uses: statuses, times, durations, and sentences with names in them."""

import re
from datetime import UTC, datetime
from functools import lru_cache

from django.templatetags.static import static
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ..utils import clock
from ..utils import formatting as durations
from ..utils.formatting import format_count, format_decimal, format_duration, format_elapsed

WAITING, ACTIVE, SUCCEEDED, FAILED, STOPPED, PAUSED = "waiting", "active", "succeeded", "failed", "stopped", "paused"
STATUS_TONES = {
    "RUNNING": ACTIVE,
    "ACTIVE": ACTIVE,
    "LEASED": ACTIVE,
    "PENDING": WAITING,
    "BLOCKED": WAITING,
    "COMPLETED": SUCCEEDED,
    "COMPLETED_WITH_ERRORS": SUCCEEDED,
    "FAILED": FAILED,
    "FAILED_FOR_GOOD": FAILED,
    "TIMED_OUT": FAILED,
    "EXPIRED": FAILED,
    "TERMINATED": STOPPED,
    "CANCELED": STOPPED,
    "SKIPPED": STOPPED,
    "PAUSED": PAUSED,
}
"""The display group of each status of a run, a task or an attempt. It determines the color."""
STATUS_ICONS = {"TIMED_OUT": "late", "EXPIRED": "late", "COMPLETED_WITH_ERRORS": "warning", "SKIPPED": "skipped"}
"""Icons of statuses that do not use the icon of their display group."""


STATUS_LABELS = {
    "RUNNING": gettext_lazy("Running"),
    "ACTIVE": gettext_lazy("Active"),
    "LEASED": gettext_lazy("Running"),
    "PENDING": gettext_lazy("Pending"),
    "WAITING": gettext_lazy("Waiting"),
    "BLOCKED": gettext_lazy("Unscheduled"),
    "COMPLETED": gettext_lazy("Completed"),
    "COMPLETED_WITH_ERRORS": gettext_lazy("Completed with errors"),
    "FAILED": gettext_lazy("Failed"),
    "FAILED_FOR_GOOD": gettext_lazy("Failed (terminal)"),
    "TIMED_OUT": gettext_lazy("Timed out"),
    "EXPIRED": gettext_lazy("Expired"),
    "TERMINATED": gettext_lazy("Terminated"),
    "CANCELED": gettext_lazy("Canceled"),
    "SKIPPED": gettext_lazy("Skipped"),
    "PAUSED": gettext_lazy("Paused"),
}
"""The label of each status on pages. Copies and exports use the status itself."""


def format_status(status: str) -> str:
    """Return the label of a status on pages."""
    return str(STATUS_LABELS.get(status) or status.replace("_", " ").capitalize())


def status_tone(status: str) -> str:
    """Return the display group of a status. Unknown statuses are displayed as waiting."""
    return STATUS_TONES.get(status, WAITING)


@lru_cache(maxsize=256)
def render_icon(name: str) -> SafeString:
    """Return an icon of the sprite. It is hidden from screen readers because a text always stands beside it."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', static("ops/icons.svg"), name
    )


def render_badge(status: str) -> SafeString:
    """Return a status as icon, label and color."""
    group = status_tone(status)
    return render_pill(group, format_status(status), STATUS_ICONS.get(status, group))


def render_state(status: str) -> SafeString:
    """Return a status as an icon in its color, with its label as tooltip and for screen readers."""
    group, label = status_tone(status), format_status(status)
    icon = render_icon(STATUS_ICONS.get(status, group))
    css = f"state {group}"
    return format_html(
        '<span class="{}" title="{}">{}<span class="visually-hidden">{}</span></span>', css, label, icon, label
    )


def render_pill(group: str, label: str, symbol: str = "") -> SafeString:
    """Return a label in the color of a display group, with the group's icon or another one."""
    return format_html('<span class="badge {}">{}{}</span>', group, render_icon(symbol or group), label)


def exact_time(moment: int | None) -> str:
    """Return a time in the user's time zone, with its UTC offset. Empty for None or 0."""
    return "" if moment is None else durations.format_timestamp(moment)


def machine_time(moment: int | None) -> str:
    """Return a time for programs: UTC, in milliseconds."""
    return "" if moment is None else _to_utc(moment).isoformat(timespec="milliseconds")


def relative_time(moment: int | None, now: int | None = None) -> SafeString:
    """Return how long ago a time was. The browser keeps counting; the tooltip has the time in both zones."""
    if not moment:
        return mark_safe('<span class="muted">–</span>')
    elapsed = (clock.now() if now is None else now) - moment
    text = _("%(span)s ago") if elapsed >= 0 else _("in %(span)s")
    return _render_time(moment, text % {"span": format_elapsed(abs(elapsed))}, "ago")


def precise_time(moment: int, now: int) -> SafeString:
    """Return a time with milliseconds. The tooltip says how long ago it was, and the time in both zones."""
    elapsed = now - moment
    text = _("%(span)s ago") if elapsed >= 0 else _("in %(span)s")
    title = "\n".join((text % {"span": format_elapsed(abs(elapsed))}, *_both_zones(moment)))
    return format_html(
        '<time class="number" datetime="{}" title="{}">{}</time>',
        machine_time(moment),
        title,
        durations.format_precise_time(moment, now),
    )


def running_time(begin: int | None, end: int | None = None) -> SafeString:
    """Return a duration. Without an end, the browser keeps counting."""
    if begin is None:
        return mark_safe('<span class="muted">–</span>')
    if end is None:
        return _render_time(begin, format_duration(clock.now() - begin), "since")
    return format_html('<span class="number">{}</span>', format_duration(end - begin))


def format_lower_bound(count: int, is_more: bool) -> str:
    """Return a count; one that stopped at its limit has a plus sign: `10,000+`."""
    return f"{format_count(count)}+" if is_more else format_count(count)


def _render_time(moment: int, text: str, counting: str) -> SafeString:
    title = "\n".join(_both_zones(moment))
    return format_html(
        '<time datetime="{}" title="{}" data-counts="{}">{}</time>', machine_time(moment), title, counting, text
    )


def _both_zones(moment: int) -> list[str]:
    """Return a time in the user's time zone and in UTC; once if they are the same."""
    return list(dict.fromkeys((exact_time(moment), durations.format_with_offset(_to_utc(moment)))))


def mark_names(sentence: str) -> SafeString:
    """Return a sentence as HTML in which names between backticks become code."""
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(sentence)))


def format_size(number: int) -> str:
    """Return a number of bytes in a suitable unit."""
    for unit, least in (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)):
        if number >= least:
            return f"{format_decimal(number / least)} {unit}"
    return f"{number} B"


def _to_utc(moment: int) -> datetime:
    return datetime.fromtimestamp(min(max(moment, 0), 253_402_300_799_000) / 1000, UTC)
