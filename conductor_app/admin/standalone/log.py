"""The log of an attempt, read on the page of its task: the end first, as text, whatever its makers call it."""

import re
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from ...core.errors import RequestRefused
from ...core.standalone.artifacts import REFERENCE
from ...engine.artifacts import logs
from ...models import Artifact
from ..ansi_colors import Piece, render_piece, split_lines
from . import artifact_links
from .artifact_links import is_readable_by, is_text
from .task_view_model import TaskViewModel

BAD = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|FAILED|Traceback)\b")
LONGEST_LINE = 4_000
LOGS = ("public/logs/live_backing.log", "public/logs/live.log", "public/logs/task.log")
"""Names under which Taskcluster's workers keep what a task has written."""


def chosen_log(story: TaskViewModel) -> Artifact | None:
    """The artifact that the address asks for, else the one that looks most like a log."""
    by_name = {row.name: row for row in story.artifacts}
    if wanted := by_name.get(story.asked.get("artifact", "")):
        return wanted
    found = [by_name[name] for name in LOGS if name in by_name]
    found += [row for row in story.artifacts if row.name.endswith(".log")]
    readable = [row for row in found if is_text(row)]
    return next(iter(readable), next(iter(found), None))


def revision_of_log(story: TaskViewModel, row: Artifact | None) -> str:
    """Says that there is more of it, without reading it: what comes is always kept under another path."""
    if row is None:
        return "none"
    try:
        behind = logs.resolve_link(row.task_id, row.number, row.name)
    except RequestRefused:
        behind = row
    has_ended = story.attempt is not None and story.attempt.ended_at is not None
    return f"{behind.pk}-{behind.path}-{has_ended}"


def log_context(story: TaskViewModel, row: Artifact | None, user: User | AnonymousUser) -> dict[str, Any]:
    """One page of it, or why it cannot be read here."""
    is_running = story.attempt is not None and story.attempt.ended_at is None
    shown: dict[str, Any] = {"row": row, "is_final": not is_running, "has_begun": story.attempt is not None}
    if row is None:
        return shown
    shown |= {"name": row.name, "at": artifact_links.artifact_context(row, story.now, user)}
    if not is_readable_by(row, user):
        return shown | {"refusal": _("It asks for the permission conductor.view_artifact.")}
    if row.expires_at <= story.now:
        return shown | {"refusal": _("It has expired.")}
    try:
        behind = logs.resolve_link(row.task_id, row.number, row.name)
        if not is_readable_by(behind, user):
            return shown | {"refusal": _("It asks for the permission conductor.view_artifact.")}
        if behind.kind == REFERENCE:
            return shown | {"refusal": _("It is with its worker, and is read there until it is kept here.")}
        return shown | _page(story, behind)
    except RequestRefused as refused:
        return shown | {"refusal": refused.message}


def _page(story: TaskViewModel, row: Artifact) -> dict[str, Any]:
    asked = story.asked.get("until", "")
    until = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 15 else None
    page = logs.read_page(row, until)
    text = page.content.decode("utf-8", "replace")
    return {"page": page, "lines": render_log_lines(text), "is_end": until is None}


def render_log_lines(text: str) -> SafeString:
    """The lines as items of a list; those that speak of an error are marked."""
    return mark_safe("".join(map(_item, split_lines(text))))


def _item(line: list[Piece]) -> str:
    text = "".join(part for part, _ in line)
    spans = "".join(render_piece(*piece) for piece in _cut(line))
    more = f'<i class="quiet">… {len(text) - LONGEST_LINE:,}</i>' if len(text) > LONGEST_LINE else ""
    bad = ' class="error"' if BAD.search(text) else ""
    return f'<li{bad}><span class="text">{spans}{more}</span></li>'


def _cut(line: list[Piece]) -> Iterator[Piece]:
    left = LONGEST_LINE
    for part, looks in line:
        if part and left:
            yield part[:left], looks
            left = max(left - len(part), 0)
