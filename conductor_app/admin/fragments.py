"""Fragments: the parts of a page that are asked for again and again while somebody looks at it."""

import re
from collections.abc import Mapping
from hashlib import blake2s
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

VOLATILE_HTML = re.compile(r"<time\b[^>]*data-counts[^>]*>[^<]*</time>|name=\"csrfmiddlewaretoken\" value=\"[^\"]*\"")
"""What differs with each look without saying anything new: the browser counts on by itself."""


def fragment_response(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponse:
    """The fragment with its revision; 204 where the poll names the revision that it would bring."""
    html = render_to_string(template, dict(context), request)
    revision = html_revision(html)
    if request.GET.get("rev") == revision:
        return HttpResponse(status=204)
    return HttpResponse(html, headers={"X-Revision": revision, "Cache-Control": "no-store"})


def html_revision(html: str) -> str:
    """A short name of what the fragment says, the same for as long as it says the same."""
    return blake2s(
        VOLATILE_HTML.sub(lambda found: _strip_relative_time(found.group()), html).encode(), digest_size=8
    ).hexdigest()


def _strip_relative_time(time: str) -> str:
    """The moment of a counting time, without its words."""
    moment = re.search(r'datetime="([^"]*)"', time)
    return moment.group(1) if moment else ""
