"""Links to runs by their human-readable keys, with a button that copies the id."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.forms.utils import flatatt
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ..insight.runs.run_keys import RunKey, short_id
from .badges import render_icon


def render_copy_button(text: str) -> SafeString:
    """Return a button that copies an id to the clipboard."""
    attributes = flatatt({"data-copy": text, "title": _("Copy the id")})
    return format_html('<button type="button" class="copy"{}>{}</button>', attributes, render_icon("copy"))


def render_run_link(run_id: str, keys: Mapping[str, RunKey] | None, task: str = "") -> SafeString:
    """Return the key of a run as a link to its page, where `task` is selected, and a button that copies its id.

    A run without a known key is named by the end of its id.
    """
    key = (keys or {}).get(run_id) or RunKey(short_id(run_id))
    address = reverse("admin:conductor_run_change", args=[run_id])
    query = f"?{urlencode({'task': task})}" if task else ""
    title = f"{key.field}: {key.text}\n{run_id}" if key.field else run_id
    link = format_html('<a href="{}{}" title="{}">{}</a>', address, query, title, key.text)
    return format_html('<span class="run-key">{}{}</span>', link, render_copy_button(run_id))


def render_short_id(id: str) -> SafeString:
    """Return the end of an id, with a button that copies the whole id."""
    attributes: dict[str, Any] = {"class": "id", "title": id}
    short = format_html("<code{}>{}</code>", flatatt(attributes), short_id(id))
    return format_html('<span class="run-key">{}{}</span>', short, render_copy_button(id))
