"""The history of a run, decision by decision, and the state of the run after each decision."""

from collections import Counter
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ...core.states import TASK
from ...insight.runs.history_replay import RunAtRevision, run_at_revision
from ...models import HistoryEntry
from ..badges import relative_time, render_badge
from .effects import describe_effects
from .run_view_model import RunViewModel

MAX_HISTORY = 100
MAX_PAST_TASKS = 100
"""Number of tasks of an old revision that the page lists."""


def run_events(view_model: RunViewModel) -> dict[str, Any]:
    """Return the history: each decision with its actor and its reason."""
    before = view_model.query.number("before")
    entries = HistoryEntry.objects.filter(run_id=view_model.run.pk).order_by("-revision")
    entries = list((entries.filter(revision__lt=before) if before else entries)[: MAX_HISTORY + 1])
    visible = entries[:MAX_HISTORY]
    return {
        **_past_context(view_model),
        "history": [_history_row(entry, view_model) for entry in visible],
        "earlier": view_model.query.address(before=visible[-1].revision) if len(entries) > MAX_HISTORY else "",
        "newest": view_model.query.address() if before else "",
    }


def _history_row(entry: HistoryEntry, view_model: RunViewModel) -> dict[str, Any]:
    """Return one decision with a link to the run as it was after it."""
    return {
        "entry": entry,
        "at": relative_time(entry.at),
        "effects": describe_effects(entry.effects) or [_no_effect_sentence(entry, view_model)],
        "address": view_model.query.address(revision=entry.revision),
        "is_chosen": view_model.query.number("revision") == entry.revision,
    }


def _no_effect_sentence(entry: HistoryEntry, view_model: RunViewModel) -> SafeString:
    """Return the sentence for a decision without effects on tasks: a delayed start, or an early check."""
    if entry.revision == 1 and view_model.run.created_at > entry.at:
        return format_html(_("start requested, begins {}"), relative_time(view_model.run.created_at))
    return format_html(_("checked, nothing to do yet"))


def _past_context(view_model: RunViewModel) -> dict[str, Any]:
    """Return the run as of the revision in the address, and links to other revisions."""
    revision, newest = view_model.query.number("revision"), view_model.run.revision
    if revision is None or not newest:
        return {"history_address": view_model.query.address(revision=newest) if newest else ""}
    revision = min(max(revision, 1), newest)
    past = run_at_revision(view_model.run.pk, revision)
    counted = Counter(task.status for task in past.tasks) if past else {}
    ways = {"oldest": 1, "older": revision - 1, "newer": revision + 1, "newest_revision": newest}
    return {
        "past": past,
        "revision": revision,
        "last_revision": newest,
        "revision_badge": render_badge(past.status) if past else "",
        "past_counts": [(render_badge(status), count) for status, count in sorted(counted.items())],
        "past_tasks": _past_task_rows(past, view_model) if past else [],
        "more_then": max(len(past.tasks) - MAX_PAST_TASKS, 0) if past else 0,
        "parameters": view_model.query.current_choices("revision", "before").items(),
        "close_address": view_model.query.address(revision=None),
        "navigation": {
            name: view_model.query.address(revision=number) if 1 <= number <= newest and number != revision else ""
            for name, number in ways.items()
        },
    }


def _past_task_rows(past: RunAtRevision, view_model: RunViewModel) -> list[dict[str, Any]]:
    """Return the tasks: changed ones first, then open ones, then the others."""
    ordered = sorted(past.tasks, key=lambda task: (not task.has_changed, task.status not in TASK.open))
    return [
        {
            "task": task,
            "badge": render_badge(task.status),
            "address": view_model.query.address(task=task.key, attempt=None),
        }
        for task in ordered[:MAX_PAST_TASKS]
    ]
