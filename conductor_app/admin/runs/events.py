"""What happened to a run, decision by decision, and the run as it was after one of them."""

from collections import Counter
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from ...core.states import TASK
from ...insight.history_replay import RunAtRevision, run_at_revision
from ...models import HistoryEntry
from ..badges import badge, relative_time
from .effects import describe_effects
from .run_view_model import RunViewModel

MOST_HISTORY = 100
MOST_THEN = 100
"""Tasks of an old revision that are named."""


def run_events(story: RunViewModel) -> dict[str, Any]:
    """What happened, decision by decision, with who asked for it and why."""
    before = story.asked.number("before")
    entries = HistoryEntry.objects.filter(run_id=story.run.pk).order_by("-revision")
    entries = list((entries.filter(revision__lt=before) if before else entries)[: MOST_HISTORY + 1])
    shown = entries[:MOST_HISTORY]
    return {
        **_past(story),
        "history": [_entry(entry, story) for entry in shown],
        "earlier": story.asked.address(before=shown[-1].revision) if len(entries) > MOST_HISTORY else "",
        "newest": story.asked.address() if before else "",
    }


def _entry(entry: HistoryEntry, story: RunViewModel) -> dict[str, Any]:
    """One decision, with the way to the run as it was after it."""
    return {
        "entry": entry,
        "at": relative_time(entry.at),
        "effects": describe_effects(entry.effects) or [_without_effect(entry, story)],
        "address": story.asked.address(revision=entry.revision),
        "is_chosen": story.asked.number("revision") == entry.revision,
    }


def _without_effect(entry: HistoryEntry, story: RunViewModel) -> SafeString:
    """What a decision came to that changed no task: a start that was asked for ahead, or a look too early."""
    if entry.revision == 1 and story.run.created_at > entry.at:
        return format_html(_("start asked for: it takes its first step {}"), relative_time(story.run.created_at))
    return format_html(_("looked at: there was nothing to do yet"))


def _past(story: RunViewModel) -> dict[str, Any]:
    """The run as of the revision that the address names, and the ways to others."""
    wanted, newest = story.asked.number("revision"), story.run.revision
    if wanted is None or not newest:
        return {"first_look": story.asked.address(revision=newest) if newest else ""}
    wanted = min(max(wanted, 1), newest)
    past = run_at_revision(story.run.pk, wanted)
    counted = Counter(task.status for task in past.tasks) if past else {}
    ways = {"oldest": 1, "older": wanted - 1, "newer": wanted + 1, "newest_revision": newest}
    return {
        "past": past,
        "wanted": wanted,
        "last_revision": newest,
        "past_badge": badge(past.status) if past else "",
        "past_counts": [(badge(status), count) for status, count in sorted(counted.items())],
        "past_tasks": _shown_then(past, story) if past else [],
        "more_then": max(len(past.tasks) - MOST_THEN, 0) if past else 0,
        "kept_choices": story.asked.kept("revision", "before").items(),
        "shut_past": story.asked.address(revision=None),
        "ways": {
            name: story.asked.address(revision=number) if 1 <= number <= newest and number != wanted else ""
            for name, number in ways.items()
        },
    }


def _shown_then(past: RunAtRevision, story: RunViewModel) -> list[dict[str, Any]]:
    """What the decision changed first, then what was open, then the others."""
    ordered = sorted(past.tasks, key=lambda task: (not task.has_changed, task.status not in TASK.open))
    return [
        {"task": task, "badge": badge(task.status), "address": story.asked.address(task=task.key, attempt=None)}
        for task in ordered[:MOST_THEN]
    ]
