"""Reading a page as a person reads it: its words, its buttons, its links."""

import re
from html import unescape

from django.http import HttpResponse
from django.urls import reverse

CELLS = r"(?:a|button|dd|dt|h1|h2|h3|label|li|option|p|span|summary|td|th|title)\b"


def html(response: HttpResponse) -> str:
    """Return the page's HTML with collapsed whitespace. Fail for an error page."""
    assert response.status_code == 200, response.status_code
    source = re.sub(r"\s+", " ", response.content.decode())
    return re.sub(rf"(<{CELLS}[^>]*>) | (?=</{CELLS}>)", r"\1", source)


def page_text(response: HttpResponse) -> str:
    """Return the page's text without markup, in one line."""
    text = re.sub(r"</?(?:code|strong|a)\b[^>]*>", "", html(response))
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", text))).strip()


def button_names(response: HttpResponse) -> list[str]:
    """Return the labels of the page's buttons."""
    return re.findall(r'id="act-(\w+)"', html(response))


def run_url(run, **asked: str) -> str:
    """Return the URL of a run's page."""
    return reverse("admin:conductor_run_change", args=[run.pk], query=asked or None)


def run_action_url(run, action: str) -> str:
    """Return the URL that a button on a run's page posts to."""
    return reverse("admin:run_act", args=[run.pk, action])
