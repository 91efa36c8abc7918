"""The log of an attempt on the page of its task: the end first, always as plain text."""

import re
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from ...core.errors import RequestRefused
from ...core.standalone.artifacts import REFERENCE
from ...engine.standalone import artifact_logs
from ...models import Artifact
from ..ansi_colors import StyledPiece, render_piece, split_lines
from . import artifact_links
from .artifact_links import is_readable_by, is_text
from .task_view_model import TaskViewModel

ERROR_PATTERN = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|FAILED|Traceback)\b")
MAX_LINE_LENGTH = 4_000
LOG_NAMES = ("public/logs/live_backing.log", "public/logs/live.log", "public/logs/task.log")
"""Names under which Taskcluster's workers store the log of a task."""


def select_log(view_model: TaskViewModel) -> Artifact | None:
    """Return the artifact in the address, otherwise the one that is most likely the log."""
    by_name = {row.name: row for row in view_model.artifacts}
    if requested := by_name.get(view_model.query.get("artifact", "")):
        return requested
    found = [by_name[name] for name in LOG_NAMES if name in by_name]
    found += [row for row in view_model.artifacts if row.name.endswith(".log")]
    readable = [row for row in found if is_text(row)]
    return next(iter(readable), next(iter(found), None))


def log_revision(view_model: TaskViewModel, row: Artifact | None) -> str:
    """Return a value that changes with the log, without reading it: new content is stored under a new path."""
    if row is None:
        return "none"
    try:
        target = artifact_logs.resolve_link(row.task_id, row.number, row.name)
    except RequestRefused:
        target = row
    has_ended = view_model.attempt is not None and view_model.attempt.ended_at is not None
    return f"{target.pk}-{target.path}-{has_ended}"


def log_context(view_model: TaskViewModel, row: Artifact | None, user: User | AnonymousUser) -> dict[str, Any]:
    """Return one page of the log, or the reason why it cannot be shown."""
    is_running = view_model.attempt is not None and view_model.attempt.ended_at is None
    context: dict[str, Any] = {"row": row, "is_final": not is_running, "has_begun": view_model.attempt is not None}
    if row is None:
        return context
    context |= {"name": row.name, "at": artifact_links.artifact_context(row, view_model.now, user)}
    if not is_readable_by(row, user):
        return context | {"refusal": _("Required permission: conductor.view_artifact")}
    if row.expires_at <= view_model.now:
        return context | {"refusal": _("The artifact has expired.")}
    try:
        target = artifact_logs.resolve_link(row.task_id, row.number, row.name)
        if not is_readable_by(target, user):
            return context | {"refusal": _("Required permission: conductor.view_artifact")}
        if target.kind == REFERENCE:
            return context | {"refusal": _("The log is still on its worker. Open it there until it is uploaded.")}
        return context | _log_page(view_model, target)
    except RequestRefused as refused:
        return context | {"refusal": refused.message}


def _log_page(view_model: TaskViewModel, row: Artifact) -> dict[str, Any]:
    query = view_model.query.get("until", "")
    until = int(query) if query.isascii() and query.isdecimal() and len(query) < 15 else None
    page = artifact_logs.read_page(row, until)
    text = page.content.decode("utf-8", "replace")
    return {"page": page, "lines": render_log_lines(text), "is_end": until is None}


def render_log_lines(text: str) -> SafeString:
    """Return the lines as list items, with error lines marked."""
    return mark_safe("".join(map(_render_line, split_lines(text))))


def _render_line(line: list[StyledPiece]) -> str:
    text = "".join(part for part, _ in line)
    spans = "".join(render_piece(*piece) for piece in _truncate_line(line))
    more = f'<i class="muted">… {len(text) - MAX_LINE_LENGTH:,}</i>' if len(text) > MAX_LINE_LENGTH else ""
    bad = ' class="error"' if ERROR_PATTERN.search(text) else ""
    return f'<li{bad}><span class="text">{spans}{more}</span></li>'


def _truncate_line(line: list[StyledPiece]) -> Iterator[StyledPiece]:
    left = MAX_LINE_LENGTH
    for part, style_names in line:
        if part and left:
            yield part[:left], style_names
            left = max(left - len(part), 0)
