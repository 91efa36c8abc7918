"""Fragments: the parts of a page that the browser polls while the page is open."""

import re
from collections.abc import Mapping
from hashlib import blake2s
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

VOLATILE_HTML = re.compile(r"<time\b[^>]*data-counts[^>]*>[^<]*</time>|name=\"csrfmiddlewaretoken\" value=\"[^\"]*\"")
"""Parts of a fragment that change without new content: relative times, which the browser updates itself, and tokens."""


def fragment_response(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponse:
    """Return the fragment with its revision, or 204 if the poll already names this revision."""
    html = render_to_string(template, dict(context), request)
    revision = html_revision(html)
    if request.GET.get("rev") == revision:
        return HttpResponse(status=204)
    return HttpResponse(html, headers={"X-Revision": revision, "Cache-Control": "no-store"})


def html_revision(html: str) -> str:
    """Return a hash of the fragment's content, without its volatile parts."""
    return blake2s(
        VOLATILE_HTML.sub(lambda found: _strip_relative_time(found.group()), html).encode(), digest_size=8
    ).hexdigest()


def _strip_relative_time(time: str) -> str:
    """Return the time of a relative time element, without its text."""
    moment = re.search(r'datetime="([^"]*)"', time)
    return moment.group(1) if moment else ""
