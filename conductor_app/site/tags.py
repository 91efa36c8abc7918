"""Built-in template tags and filters, such as `{% icon "queues" %}`, `{{ time|ago }}` and `{{ status|badge }}`.

The tags are for markup that many pages repeat: breadcrumbs, labeled values, form fields and action menus.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from django import template
from django.forms import BoundField
from django.forms.utils import flatatt
from django.template import Context
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import escape, format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_noop, pgettext

from ..access.authentication import current_actor, server_address
from ..access.pages import audit
from ..access.permissions import READ, WORKFLOW_DEF, permission_words, smallest_role_with
from ..access.visibility import may, sees_all_runs
from ..core.primitives import JsonValue
from ..db.fields import dumps
from ..definitions.policies import type_label
from ..monitoring.samples import WorkerSample
from ..runs.models import Run
from ..runs.queries.recent import run_key
from ..runs.timeline.queries import TimelineSegment
from ..tasks.queries.queue_states import QueueState
from ..utils.differences import MISSING
from ..utils.formatting import format_duration
from ..web import badges, links
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
MAX_REASON_LENGTH, MAX_GRANTED = 500, 8
THICK_BAR = (3, 12, 2)
"""Top, height and corner radius of the bar of a segment, in pixels."""
TIMELINE_BARS = {
    "wait": (5, 8, 2),
    "gap": (8, 2, 0),
    "delay": (8, 2, 0),
    "hold": (6, 6, 1),
    "typical": (1, 16, 0),
    "idle": (3, 12, 0),
}

register.simple_tag(badges.render_icon, name="icon")
register.simple_tag(badges.render_pill, name="pill")
register.filter("ago", badges.relative_time)
register.filter("exact", badges.exact_time)
register.filter("badge", badges.render_badge)
register.filter("marked", badges.mark_names)
register.filter("size", badges.format_size)
register.filter("many", badges.format_count)
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


NOTICE_ICONS = {"waiting": "warning"}
"""The icon of a notice whose name is not that of its tone."""


@register.simple_tag(name="crumb")
def render_crumb(label: str, view: str = "", *args: object, url: str = "", version: int | None = None) -> SafeString:
    """Return one entry of the breadcrumbs: a link to a view or an address, or plain text for the current page."""
    address = reverse(view, args=args) if view else url
    label = f"{label} v{version}" if version else label
    if not address:
        return format_html("› {}", label)
    return format_html('› <a href="{}">{}</a>', address, label)


@register.simple_tag(name="classes")
def join_classes(*names: Any, **flags: Any) -> str:
    """Return the value of a class attribute: `names`, and the names of the `flags` that are true."""
    chosen = [str(name) for name in names if name] + [name.replace("_", "-") for name, flag in flags.items() if flag]
    return " ".join(chosen)


@register.simple_tag(name="may", takes_context=True)
def has_permission(context: Context, permission: str) -> bool:
    """Return True if the user has a permission on any row, by a role or by a grant."""
    return may(context["request"].user, permission)


@register.simple_tag(name="attributes")
def render_attributes(values: Mapping[str, Any]) -> SafeString:
    """Return the attributes of an element."""
    return flatatt(dict(values))


@register.simple_tag(name="current")
def mark_current(one: Any, other: Any, kind: str = "true") -> SafeString:
    """Return the attribute of a link that is the current choice, if both values are equal. `kind` is its value."""
    return flatatt({"aria-current": kind}) if one == other else mark_safe("")


@register.filter("links")
def render_links(pairs: Iterable[tuple[str, str]], separator: str = ", ") -> SafeString:
    """Return pairs of label and address as links in one line."""
    return format_html_join(mark_safe(separator), '<a href="{1}">{0}</a>', pairs)


@register.filter("query")
def encode_query(pairs: Iterable[tuple[str, str]]) -> str:
    """Return pairs of name and value as the query of an address."""
    return urlencode(list(pairs))


@register.filter("versioned")
def render_name_and_version(row: Any) -> SafeString:
    """Return the name and the version of a run or definition."""
    return format_html('{} <span class="version">v{}</span>', row.name, row.version)


register.simple_tag(links.render_copy_button, name="copy_button")
register.simple_tag(links.render_short_id, name="short_id")


@register.simple_tag(name="run_link", takes_context=True)
def render_run_link(context: Context, run_id: str, task: str = "") -> SafeString:
    """Return the key of a run, from the `run_keys` of the context, as a link to its page."""
    return links.render_run_link(run_id, context.get("run_keys"), task)


@register.simple_tag(name="timeline_bar")
def render_timeline_bar(segment: TimelineSegment) -> SafeString:
    """Return the bar of a segment, in a row of a timeline that is 18 pixels high."""
    y, height, radius = TIMELINE_BARS.get(segment.kind, THICK_BAR)
    box = {"x": segment.left, "y": y, "width": segment.width, "height": height, "rx": radius}
    css = f"{segment.kind} {segment.status.lower()}"
    return format_html('<rect class="{}"{}><title>{}</title></rect>', css, flatatt(box), segment.title)


@register.simple_tag(name="gate_icon")
def render_gate_icon(is_open: bool) -> SafeString:
    return (
        _labeled_icon("succeeded", pgettext("a gate", "open"))
        if is_open
        else _labeled_icon("waiting", pgettext("a gate", "shut"))
    )


@register.simple_tag(name="step_icon")
def render_step_icon(is_done: bool) -> SafeString:
    """Return the icon of a step of the instructions for newcomers."""
    return _labeled_icon("succeeded", gettext("done")) if is_done else _labeled_icon("todo", gettext("to do"))


@register.simple_tag(name="worker_code", takes_context=True)
def render_worker_code(context: Context, sample: WorkerSample) -> str:
    """Return the code of a sample worker for this server."""
    request = context["request"]
    return sample.code_for(f"{server_address(request)}/api")


@register.simple_tag(name="limited_view")
def render_limited_view(kind: str = WORKFLOW_DEF, shows_all: bool | None = None) -> SafeString | str:
    """Return a sentence for users whose grants let them see some rows only; by default, some runs only.

    `kind`: the target type of the grants, whose names it lists; empty for all types.
    """
    actor = current_actor()
    if actor is None or (sees_all_runs() if shows_all is None else shows_all):
        return ""
    rights = actor.permissions.names.items()
    granted = [each for (access, of), each in rights if access == READ and kind in ("", of)]
    names = sorted({name for each in granted for name in (*each.exact, *(f"{prefix}*" for prefix in each.prefixes))})
    listed = ", ".join(names[:MAX_GRANTED]) + " …" * (len(names) > MAX_GRANTED)
    text = gettext(
        "Only what your grants let you see is listed: %(names)s. Administrators give more on the page People."
    )
    return format_html('<p class="muted">{}</p>', text % {"names": listed or gettext("none of them applies here")})


@register.simple_block_tag(name="fact")
def render_fact(content: SafeString, label: str, css: str | None = None) -> SafeString:
    """Return a labeled value for a `<dl class="facts">`, or nothing without a value. `css`: the class of the value."""
    value = _strip(content)
    if not value:
        return mark_safe("")
    return format_html("<div><dt>{}</dt><dd{}>{}</dd></div>", label, flatatt({"class": css}), value)


@register.simple_block_tag(name="placeholder")
def render_placeholder(content: SafeString, title: str, css: str = "", action: str = "", url: str = "") -> SafeString:
    """Return the text that stands in the place of an empty list or page, under a title, and a link as a button."""
    link = format_html('<p><a class="button default" href="{}">{}</a></p>', url, action) if action and url else ""
    return format_html('<div class="{}"><h2>{}</h2>{}{}</div>', f"empty {css}".strip(), title, content, link)


@register.simple_block_tag(name="notice")
def render_notice(content: SafeString, tone: str, icon: str = "") -> SafeString:
    """Return a text with an icon, by default that of its tone, that stands out. Screen readers announce a failure."""
    attributes = {"class": f"notice {tone}", "role": "alert" if tone == "failed" else None}
    shown = badges.render_icon(icon or NOTICE_ICONS.get(tone, tone))
    return format_html("<div{}>{}<p>{}</p></div>", flatatt(attributes), shown, _strip(content))


@register.simple_block_tag(name="listing")
def render_listing(content: SafeString, rows: Any, empty: str) -> SafeString:
    """Return a table with the content, or a text if there are no rows."""
    if not rows:
        return format_html('<p class="muted">{}</p>', empty)
    return format_html('<table class="wide cards">{}</table>', content)


@register.simple_tag(name="columns")
def render_columns(*labels: str, numbers: str = "", actions: bool = False) -> SafeString:
    """Return the head of a table with the labels of its columns.

    A column without a label is left out. `numbers`: the places of the columns with numbers, from 1. `actions`: a last
    column has the actions of each row.
    """
    places = numbers.split()
    cells = format_html_join(
        "",
        '<th scope="col"{}>{}</th>',
        (
            (flatatt({"class": "number"} if str(place) in places else {}), label)
            for place, label in enumerate(labels, start=1)
            if label
        ),
    )
    last = '<th scope="col"><span class="visually-hidden">{}</span></th>'
    return format_html(
        "<thead><tr>{}{}</tr></thead>", cells, format_html(last, gettext("Available actions")) if actions else ""
    )


@register.simple_block_tag(name="action", takes_context=True)
def render_action(
    context: Context,
    content: SafeString,
    label: str,
    view: str = "",
    *args: object,
    url: str = "",
    icon: str = "",
    id: str | None = None,
    css: str = "",
) -> SafeString:
    """Return a button that opens a form, with the content as the fields of the form.

    The form is posted to `view` with `args`, or to `url`, or to the current page. `css` is `destructive` for an action
    that cannot be undone.
    """
    return format_html(
        "<details{}><summary>{}{}</summary>{}</details>",
        flatatt({"class": f"action-menu {css}".strip(), "id": id}),
        badges.render_icon(icon) if icon else "",
        label,
        render_post_form(context, content, view, *args, url=url),
    )


def render_post_form(
    context: Context, content: SafeString, view: str = "", *args: object, url: str = "", css: str | None = None
) -> SafeString:
    """Return a form with the content as its fields. It is posted to `view` with `args`, to `url`, or to the page."""
    address = reverse(view, args=args) if view else url
    token = format_html('<input type="hidden" name="csrfmiddlewaretoken" value="{}">', context["csrf_token"])
    attributes = flatatt({"class": css, "action": address or None})
    return format_html('<form method="post"{}>{}{}</form>', attributes, token, content)


register.simple_block_tag(render_post_form, takes_context=True, name="post_form")


@register.simple_tag(name="error_attributes")
def render_error_attributes(field: Any) -> SafeString:
    """Return the attributes that connect the input of a field to its list of errors, if there are any."""
    return flatatt({"aria-invalid": "true", "aria-describedby": f"{field.id}-error"}) if field.errors else mark_safe("")


@register.simple_tag(name="reason_field")
def render_reason_field(
    prefix: str, *parts: Any, required: bool = False, value: str | None = None, hint: str = ""
) -> SafeString:
    """Return the field for the reason of an action. The id of the input is `prefix` and `parts`, joined by hyphens.

    `hint`: stands behind the label.
    """
    key = "-".join([prefix, *(str(part) for part in parts)])
    attributes = {"name": "reason", "id": key, "maxlength": MAX_REASON_LENGTH, "value": value, "required": required}
    label = format_html('{} <span class="muted">{}</span>', gettext("Reason"), hint) if hint else gettext("Reason")
    return format_html('<label for="{}">{}</label><input type="text"{}>', key, label, flatatt(attributes))


@register.simple_block_tag(name="text_field")
def render_text_field(content: SafeString, name: str, label: str, **attributes: Any) -> SafeString:
    """Return a labeled text input with the content as its help text. `attributes` are those of the input."""
    key = attributes.pop("id", name)
    return format_html(
        '<div class="field"><label for="{}">{}</label><input{}>{}</div>',
        key,
        label,
        flatatt({"type": "text", "name": name, "id": key, **attributes}),
        _help_text(content),
    )


@register.simple_block_tag(name="form_field")
def render_form_field(content: SafeString, field: BoundField, label: str = "") -> SafeString:
    """Return a field of a form with its label and errors, and the content or the field's own text as its help text."""
    return format_html(
        '<div class="field{}">{}<label for="{}">{}</label>{}{}</div>',
        " wrong" if field.errors else "",
        field.errors,
        field.id_for_label,
        label or field.label,
        field,
        _help_text(_strip(content) or str(field.help_text)),
    )


def _help_text(content: str) -> SafeString:
    text = _strip(content)
    return format_html('<p class="help">{}</p>', text) if text else mark_safe("")


def _strip(content: str) -> str:
    text = content.strip()
    return mark_safe(text) if isinstance(content, SafeString) else text


def _labeled_icon(name: str, label: str) -> SafeString:
    address = f"{static('ops/icons.svg')}#{name}"
    return format_html('<svg class="icon" role="img" aria-label="{}"><use href="{}" /></svg>', label, address)
