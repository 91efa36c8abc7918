"""Built-in template tags and filters, such as `{% icon "queues" %}`, `{{ time|ago }}` and `{{ status|badge }}`."""

from typing import Any, Literal

from django import template
from django.utils.html import escape, format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_noop

from ..access.pages import audit
from ..access.permissions import permission_words, smallest_role_with
from ..core.primitives import JsonValue
from ..core.schemas import format_value
from ..db.fields import dumps
from ..definitions.policies import type_label
from ..runs.models import Run
from ..runs.queries.recent import run_key
from ..tasks.queries.queue_states import QueueState
from ..utils.differences import MISSING
from ..utils.formatting import format_duration
from ..web import badges
from ..web.forms import format_json
from .sidebar import page_name

MAX_VALUE_LENGTH = 300

register = template.Library()
EMPTY_CELLS = ("", "-", "–")
"""Texts of a cell without content."""
COLUMN_NAMES = (
    gettext_noop("access"),
    gettext_noop("action"),
    gettext_noop("application"),
    gettext_noop("application id"),
    gettext_noop("client id"),
    gettext_noop("content type"),
    gettext_noop("deleted when expired"),
    gettext_noop("description"),
    gettext_noop("disabled"),
    gettext_noop("event"),
    gettext_noop("group"),
    gettext_noop("is active"),
    gettext_noop("key id"),
    gettext_noop("kind"),
    gettext_noop("number"),
    gettext_noop("owner email"),
    gettext_noop("queue"),
    gettext_noop("reason"),
    gettext_noop("role"),
    gettext_noop("role id"),
    gettext_noop("schedule name"),
    gettext_noop("target id"),
    gettext_noop("target type"),
    gettext_noop("task id"),
    gettext_noop("updated by"),
    gettext_noop("user"),
    gettext_noop("value"),
)
"""Names of fields that are columns of lists, filters, or fields of Django's forms."""

register.simple_tag(badges.render_icon, name="icon")
register.simple_tag(badges.render_pill, name="pill")
register.filter("ago", badges.relative_time)
register.filter("exact", badges.exact_time)
register.filter("badge", badges.render_badge)
register.filter("marked", badges.mark_names)
register.filter("size", badges.format_size)
register.filter("many", badges.format_count)
register.filter("as_typed", format_value)
register.filter("as_json", format_json)
register.filter("page_name", page_name)
register.filter("audit_changes", audit.render_changes)
register.filter("audit_details", audit.render_details)
register.filter("permission_words", permission_words)
register.filter("smallest_role", smallest_role_with)


@register.filter("action_name")
def format_action(action: str) -> str:
    """Return an action of the audit log in words."""
    return action.replace("_", " ")


@register.filter("step_type")
def render_step_type(type: str) -> SafeString:
    """Render the plain name of a step type. The type is its tooltip."""
    return format_html('<span title="{}">{}</span>', type, type_label(type))


@register.filter("step_type_name")
def step_type_name(type: str) -> str:
    """Return the plain name of a step type."""
    return type_label(type)


@register.filter("key")
def run_key_text(run: Run) -> str:
    """Return the human-readable key of a run."""
    return run_key(run).text


@register.filter
def waiting(queue: QueueState) -> str:
    """Return the number of pending attempts of a queue, with a plus sign if counting stopped at its limit."""
    return badges.format_lower_bound(queue.counted, queue.has_more)


@register.filter("span")
def span_or_dash(milliseconds: int | Literal[""] | None) -> str:
    """Return a duration as text, or a dash if there is none."""
    return "–" if milliseconds is None or milliseconds == "" else format_duration(milliseconds)


@register.filter
def label_column(name: str) -> str:
    """Return the label of a column, a filter or a field of a form.

    The names of fields are in English, because changes to them need a migration.
    """
    english = str(name)[:1].lower() + str(name)[1:]
    return gettext(english) if english in COLUMN_NAMES else name


@register.filter
def with_words(cells: list[SafeString], headers: list[dict[str, Any]]) -> SafeString:
    """Return the cells of a row with the labels of their columns, which a narrow page shows beside each value."""
    labels = (escape(strip_tags(label_column(header["text"]))) for header in headers)
    return mark_safe("".join(_label_cell(cell, label) for cell, label in zip(cells, labels, strict=False)))


def _label_cell(cell: SafeString, label: str) -> str:
    """Return the cell with its label, and marked if it is empty, so that a narrow page can hide it."""
    is_drawn = any(mark in cell for mark in ("<img", "<svg", "<input"))
    none = "" if is_drawn or strip_tags(cell).strip() not in EMPTY_CELLS else "data-none "
    return cell.replace("<td ", f'<td {none}data-word="{label}" ', 1)


@register.filter
def json_cut(value: JsonValue) -> SafeString | str:
    """Return a JSON value on one line, shortened. A dash if there is no value."""
    if value is MISSING:
        return mark_safe('<span class="muted">–</span>')
    text = dumps(value) or "null"
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


@register.filter
def lasting(begin: int | None, end: int | None = None) -> SafeString | str:
    """Return how long something has lasted. Without an end, the browser keeps counting."""
    return badges.running_time(begin, end)
