"""What templates may say without loading anything: `{% icon "queues" %}`, `{{ moment|ago }}`, `{{ status|badge }}` …"""

from django import template
from django.utils.safestring import SafeString

from ..insight.spans import span
from . import marks

register = template.Library()
register.simple_tag(marks.icon, name="icon")
register.simple_tag(marks.pill, name="pill")
register.filter("ago", marks.ago)
register.filter("exact", marks.exact)
register.filter("badge", marks.badge)
register.filter("marked", marks.marked)
register.filter("size", marks.size)
register.filter("many", marks.many)


@register.filter("span")
def span_or_dash(milliseconds: int | None) -> str:
    """A span in words; a dash where there is none."""
    return "–" if milliseconds is None else span(milliseconds)


@register.filter
def lasting(begin: int | None, end: int | None = None) -> SafeString | str:
    """How long something has gone on: it goes on counting in the browser while it has no end."""
    return marks.lasting(begin, end)
