"""The documentation inside the admin: the link Help of each page, and the part of Markdown that the documents use."""

import re
from collections.abc import Iterator
from functools import cache
from posixpath import join, normpath
from typing import Any

from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.html import escape
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
FENCE = re.compile(r" *```")
MARKER = re.compile(r"( *)(-|\d+\.) +")
INLINE = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)|\*\*(.+?)\*\*|(?<!\w)\*([^*\s][^*]*)\*(?!\w)|&lt;(http[^&\s]+)&gt;")


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
    """Return a document as HTML. Links to other documents lead to their help pages."""
    text = re.sub(r"\A---\n.*?\n---\n|<!--.*?-->|^!\[[^\n]*\)$|<a id=[^>]*></a>", "", text, flags=re.S | re.M)
    return "".join(_blocks(text.splitlines(), name))


def _blocks(lines: list[str], name: str) -> Iterator[str]:
    while lines:
        line = lines[0]
        if not line.strip():
            count = 1
        elif FENCE.match(line):
            count = next(at for at, each in enumerate(lines[1:], 1) if FENCE.match(each)) + 1
            yield f'<pre tabindex="0">{escape(chr(10).join(lines[1 : count - 1]))}</pre>'
        elif line.startswith("#"):
            count, level = 1, len(line) - len(line.lstrip("#"))
            title = line[level:].strip()
            yield f'<h{level} id="{_anchor(title)}">{_inline(title, name)}</h{level}>'
        elif line.startswith("|"):
            count = next((at for at, each in enumerate(lines) if not each.startswith("|")), len(lines))
            yield _table(lines[:count], name)
        elif found := MARKER.match(line):
            count = _end_of_list(lines)
            kind = "ul" if found[2] == "-" else "ol"
            yield f"<{kind}>{''.join(_items(lines[:count], name))}</{kind}>"
        else:
            ends = (at for at, each in enumerate(lines) if at and (not each.strip() or _begins_block(each)))
            count = next(ends, len(lines))
            yield f"<p>{_inline(' '.join(each.strip() for each in lines[:count]), name)}</p>"
        lines = lines[count:]


def _begins_block(line: str) -> bool:
    return bool(FENCE.match(line) or MARKER.match(line) or line.startswith(("#", "|")))


def _end_of_list(lines: list[str]) -> int:
    """Return the number of lines of the list that begins here: its items and what is indented below them."""
    for at, each in enumerate(lines):
        is_inside = not each.strip() or each.startswith(" ") or MARKER.match(each)
        if not is_inside and not (lines[at - 1].strip() and not _begins_block(each)):
            return at
    return len(lines)


def _items(lines: list[str], name: str) -> Iterator[str]:
    starts = [at for at, each in enumerate(lines) if (found := MARKER.match(each)) and not found[1]]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        width = MARKER.match(lines[start]).end()  # type: ignore[union-attr]  # It matches at the start of an item.
        inner = [lines[start][width:], *(re.sub(f"^ {{1,{width}}}", "", each) for each in lines[start + 1 : end])]
        yield f"<li>{''.join(_blocks(inner, name))}</li>"


def _table(lines: list[str], name: str) -> str:
    rows = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in lines]
    head, body = rows[0], rows[2:]
    cells = "".join(f"<th>{_inline(each.strip(), name)}</th>" for each in head)
    shown = ("".join(f"<td>{_inline(each.strip(), name)}</td>" for each in row) for row in body)
    return (
        f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>'
        f"{''.join(f'<tr>{row}</tr>' for row in shown)}</tbody></table></div>"
    )


def _inline(text: str, name: str) -> str:
    codes: list[str] = []

    def keep(found: re.Match[str]) -> str:
        codes.append(f"<code>{escape(found[2].strip())}</code>")
        return f"\x00{len(codes) - 1}\x00"

    def mark(found: re.Match[str]) -> str:
        label, target, strong, soft, address = found.groups()
        if address:
            return f'<a href="{address}">{address}</a>'
        if strong:
            return f"<b>{INLINE.sub(mark, strong)}</b>"
        return f"<i>{soft}</i>" if soft else _link(INLINE.sub(mark, label), target, name)

    text = re.sub(r"(`+)(.+?)\1", keep, text.replace("\\|", "|"))
    return re.sub("\x00(\\d+)\x00", lambda found: codes[int(found[1])], INLINE.sub(mark, str(escape(text))))


def _link(label: str, target: str, name: str) -> str:
    """Return a link to a document or another site, or the label alone for files that installations do not have."""
    if target.startswith(("https://", "http://", "#")):
        return f'<a href="{target}">{label}</a>'
    path, _sign, anchor = target.partition("#")
    document = normpath(join(name, "..", path)).removesuffix(".md")
    if not path.endswith(".md") or not (DOCS / f"{document}.md").is_file():
        return label
    return f'<a href="{reverse("admin:help", args=[document])}{f"#{anchor}" if anchor else ""}">{label}</a>'


def _anchor(title: str) -> str:
    """Return the id of a heading, as links of the documents name it."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower())
