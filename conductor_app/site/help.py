"""The documentation inside the admin: the guide that each page leads to, and the documents as pages."""

import re
from functools import cache
from itertools import pairwise
from posixpath import join, normpath
from typing import Any

from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from ..settings.resources import RESOURCES_DIR
from ..web.pages import ObjectPage

DOCS = RESOURCES_DIR / "docs"
GUIDES = {
    "conductor/run": "how-to/find-and-change-runs",
    "conductor/run/": "how-to/failed-and-waiting-runs",
    "conductor/workflowdefinition": "how-to/change-definitions",
    "conductor/workflowdefinition/": "how-to/test-workflows",
    "conductor/taskdefinition": "how-to/handle-failures",
    "conductor/schedule": "how-to/write-schedules",
    "conductor/eventhandler": "how-to/event-handlers-and-webhooks",
    "conductor/task": "how-to/taskcluster",
    "conductor/standalonetask": "how-to/taskcluster",
    "conductor/client": "how-to/taskcluster",
    "conductor/scoperole": "how-to/taskcluster",
    "conductor/secret": "how-to/secrets-and-environment",
    "conductor/variable": "how-to/secrets-and-environment",
    "conductor/grant": "reference/permissions",
    "conductor/application": "reference/permissions",
    "conductor/accesskey": "reference/permissions",
    "people": "reference/permissions",
    "auth": "reference/permissions",
    "bulk": "how-to/find-and-change-runs",
    "runs": "how-to/failed-and-waiting-runs",
    "failures": "how-to/failed-and-waiting-runs",
    "human-tasks": "how-to/human-tasks",
    "form-templates": "how-to/human-tasks",
    "queue": "how-to/limits",
    "why-waiting": "how-to/failed-and-waiting-runs",
    "workers": "how-to/write-a-worker",
    "alert": "how-to/alerts-and-notifications",
    "views": "how-to/alerts-and-notifications",
    "schedules": "how-to/write-schedules",
    "event": "how-to/event-handlers-and-webhooks",
    "webhooks": "how-to/event-handlers-and-webhooks",
    "definition": "how-to/change-definitions",
    "integrations": "how-to/ai-steps",
    "prompts": "how-to/ai-steps",
    "budgets": "how-to/ai-steps",
    "vector-indexes": "how-to/ai-steps",
    "quotas": "how-to/limits",
    "system": "how-to/monitor",
    "undelivered-messages": "how-to/monitor",
}
"""The guide of each page, by the beginning of its path below the overview. The longest one counts."""
OTHERWISE = "reference/pages"
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def guide_address(path: str) -> str:
    """Return the address of the guide to a page, or nothing if the installation has no documents."""
    if not DOCS.is_dir():
        return ""
    below = path.removeprefix(reverse("admin:index"))
    found = max((start for start in GUIDES if below.startswith(start)), key=len, default="")
    # The list itself has another guide than what is below it.
    if found.endswith("/") and below.count("/") == found.count("/"):
        found = found.rstrip("/")
    return reverse("admin:help", args=[GUIDES.get(found, OTHERWISE)])


class HelpPage(ObjectPage):
    """One document of the documentation. Open to every user who may sign in."""

    name, template, route = "help", "ops/site/help.html", "help/<path:document>/"

    def is_open_to(self, request: HttpRequest) -> bool:
        return request.user.is_staff

    def get_context(self, request: HttpRequest, document: str) -> dict[str, Any]:
        file = (DOCS / f"{document}.md").resolve()
        if not file.is_relative_to(DOCS.resolve()) or not file.is_file():
            raise Http404(_("No such document."))
        return {"title": _("Help"), "text": _read_document(document)}


@cache
def _read_document(name: str) -> SafeString:
    return mark_safe(render_markdown((DOCS / f"{name}.md").read_text(encoding="utf-8"), name))


def render_markdown(text: str, name: str) -> str:
    """Return a document as HTML, without its pictures. Links to other documents lead to their help pages."""
    # Only this page needs the library.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(FRONT_MATTER.sub("", text))
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(following.content))
    for token in tokens:
        token.children = [each for each in token.children or () if each.type != "image"]
        for link in (each for each in token.children if each.type == "link_open"):
            address = _link(str(link.attrs.pop("href")), name)
            if address:
                link.attrSet("href", address)
    # Tables and code scroll on narrow pages, by keyboard too.
    rendered = parser.renderer.render(tokens, parser.options, {}).replace("<pre>", '<pre tabindex="0">')
    return rendered.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")


def _link(target: str, name: str) -> str:
    """Return the address for a link, or "" for files that installations do not have."""
    if target.startswith(("https://", "http://", "#")):
        return target
    path, _sign, anchor = target.partition("#")
    document = normpath(join(name, "..", path)).removesuffix(".md")
    if not path.endswith(".md") or not (DOCS / f"{document}.md").is_file():
        return ""
    return f"{reverse('admin:help', args=[document])}{f'#{anchor}' if anchor else ''}"


def _anchor(title: str) -> str:
    """Return the id of a heading, as links of the documents name it."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower())
