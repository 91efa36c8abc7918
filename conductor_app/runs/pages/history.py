"""The history of a run: its decisions in words, its lives, and its state at a revision."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.failure_grouping import informative_line
from ...core.states import TASK
from ...utils.formatting import LazyText, format_duration
from ...utils.time_scale import TimeScale
from ...web.badges import exact_time, format_status, mark_names, relative_time, render_badge, status_tone
from ...web.charts import axis_points
from ..models import HistoryEntry
from ..queries.history import RunAtRevision, RunLife, run_at_revision
from ..timeline.tree import FAILED, LoadedTree, TaskSpan, is_held_type, state_of
from .view_model import RunViewModel

MAX_SENTENCES = 12
EffectLine = dict[str, Any]
PAST_TENSE = {
    "cancel": gettext_lazy("canceled"),
    "complete": gettext_lazy("completed"),
    "complete_with_errors": gettext_lazy("completed with errors"),
    "expire": gettext_lazy("timed out"),
    "fail": gettext_lazy("failed"),
    "fail_for_good": gettext_lazy("failed (terminal)"),
    "hand_back": gettext_lazy("released"),
    "pause": gettext_lazy("paused"),
    "reopen": gettext_lazy("reopened"),
    "rerun": gettext_lazy("rerun"),
    "restart": gettext_lazy("restarted"),
    "retry": gettext_lazy("retried"),
    "renew": gettext_lazy("renewed"),
    "resume": gettext_lazy("resumed"),
    "skip": gettext_lazy("skipped"),
    "terminate": gettext_lazy("terminated"),
    "time_out": gettext_lazy("timed out"),
}
"""The past tense of each event of core/states.py."""


def describe_effects(effects: Iterable[EffectLine]) -> list[SafeString]:
    """Return one sentence per effect. Effects beyond the limit become a count per kind."""
    lines = list(effects)
    sentences = [mark_names(_sentence(line)) for line in lines[:MAX_SENTENCES]]
    other_kinds = Counter(str(line.get("effect")) for line in lines[MAX_SENTENCES:])
    return sentences + [
        mark_names(_("%(count)s more × %(kind)s") % {"count": count, "kind": kind})
        for kind, count in other_kinds.items()
    ]


def _sentence(line: EffectLine) -> str:
    name = str(line.get("effect"))
    return EFFECT_SENTENCES[name](line) if name in EFFECT_SENTENCES else name


def _transition_sentence(template: Any) -> Callable[[EffectLine], str]:
    """Return a function that describes a transition: the object and the event."""

    def describe(line: EffectLine) -> str:
        event = str(line.get("event", ""))
        worker = _(", worker `%(worker)s`") % {"worker": line["worker"]} if line.get("worker") else ""
        sentence = template % {"task": line.get("task", ""), "moved": PAST_TENSE.get(event, event)}
        return f"{sentence}{worker}{_reason_suffix(line)}"

    return describe


def _fact_sentence(sentence: str | LazyText, **names: str) -> Callable[[EffectLine], str]:
    """Return a function that fills in facts of the effect. `names`: names in the sentence to names in the effect."""
    return lambda line: sentence % {name: line.get(fact, "") for name, fact in names.items()}


def _reason_suffix(line: EffectLine) -> str:
    return f" — {informative_line(str(line['reason']))}" if line.get("reason") else ""


def _requeue_sentence(line: EffectLine) -> str:
    task = {"task": line.get("task")}
    sentence = _("`%(task)s` moved in its queue") % task
    queue = _(" to `%(queue)s`") % {"queue": line["queue"]} if line.get("queue") else ""
    return sentence + queue + (_(", priority %(priority)s") % line if "priority" in line else "")


def _creation_sentence(line: EffectLine) -> str:
    status = format_status(str(line.get("becomes") or line.get("status") or "")).lower()
    facts = {"task": line.get("task"), "type": line.get("type"), "status": status}
    return _("`%(task)s` (%(type)s) created, %(status)s") % facts


def _attempt_sentence(line: EffectLine) -> str:
    return _("`%(task)s`: attempt %(number)s opened") % {"task": line.get("task"), "number": _attempt_number(line) + 1}


def _attempt_number(line: EffectLine) -> int:
    return int(line.get("number", 0))


def _deletion_sentence(line: EffectLine) -> str:
    count, tasks = int(line.get("count", 0)), _format_task_names(line.get("tasks", []))
    sentence = ngettext("%(count)s task deleted: %(tasks)s", "%(count)s tasks deleted: %(tasks)s", count)
    return sentence % {"count": count, "tasks": tasks}


def _list_sentence(sentence: str | LazyText, fact: str) -> Callable[[EffectLine], str]:
    return lambda line: sentence % {"names": ", ".join(map(str, line.get(fact, [])))}


def _format_task_names(tasks: list[Any]) -> str:
    return ", ".join(f"`{task}`" for task in tasks[:MAX_SENTENCES]) + (" …" if len(tasks) > MAX_SENTENCES else "")


EFFECT_SENTENCES: dict[str, Callable[[EffectLine], str]] = {
    "CreateTask": _creation_sentence,
    "OpenAttempt": _attempt_sentence,
    "TransitionAttempt": _transition_sentence(gettext_lazy("attempt of `%(task)s` %(moved)s")),
    "ResolveTask": _transition_sentence(gettext_lazy("`%(task)s` %(moved)s")),
    "RequeueAttempt": _requeue_sentence,
    "StopTask": _fact_sentence(gettext_lazy("`%(task)s` stopped at a breakpoint"), task="task"),
    "ReleaseTask": _fact_sentence(gettext_lazy("`%(task)s` continued from a breakpoint"), task="task"),
    "RemoveStops": _fact_sentence(gettext_lazy("stop at a breakpoint ended")),
    "UpdateTask": _fact_sentence(gettext_lazy("`%(task)s` updated"), task="task"),
    "PruneIteration": _fact_sentence(
        gettext_lazy("iteration %(iteration)s of `%(loop)s` discarded"), iteration="iteration", loop="loop"
    ),
    "DeleteTasks": _deletion_sentence,
    "SetVariables": _list_sentence(gettext_lazy("variables set: %(names)s"), "names"),
    "TransitionRun": _transition_sentence(gettext_lazy("run %(moved)s")),
    "UpdateRun": _list_sentence(gettext_lazy("run updated: %(names)s"), "fields"),
    "StartRun": _fact_sentence(
        gettext_lazy("run of `%(name)s` v%(version)s started"), name="definition", version="version"
    ),
    "SendMessage": _fact_sentence(gettext_lazy("message sent: %(subject)s"), subject="subject"),
    "SwitchDefinition": _fact_sentence(
        gettext_lazy("upgraded to version %(version)s of `%(name)s`"), name="definition", version="version"
    ),
}
"""The sentence of each effect of core/effects.py. Other effects are shown by their name."""


def revision_slider(view_model: RunViewModel, past: RunAtRevision | None) -> dict[str, Any]:
    """Return the context of the slider. `past`: the run at the selected revision; None if it is the newest one."""
    newest, query = view_model.run.revision, view_model.query
    wanted = query.number("revision")
    revision = newest if wanted is None else min(max(wanted, 1), newest)
    ways = {"oldest": 1, "older": revision - 1, "newer": revision + 1, "newest_revision": newest}
    return {
        "past": past,
        "revision": revision,
        "last_revision": newest,
        "revision_at": exact_time(past.at) if past else "",
        "revision_badge": render_badge(past.status) if past else "",
        "is_lost": past is None and revision < newest,
        "parameters": query.current_choices("revision", "before", "page").items(),
        "close_address": query.address(revision=None),
        "navigation": {
            name: query.address(revision=number) if 1 <= number <= newest and number != revision else ""
            for name, number in ways.items()
        },
    }


COLUMNS = 120
"""Columns of the load."""
HEIGHT = 26
"""Height of the highest column in pixels."""
LIFE_NAMES = {
    "": gettext_lazy("First execution"),
    "retry": gettext_lazy("Retry"),
    "rerun": gettext_lazy("Rerun"),
    "restart": gettext_lazy("Restart"),
    "reopen": gettext_lazy("Reopened"),
}


@dataclass(frozen=True, slots=True)
class LifeBand:
    """One life of the run on the strip."""

    left: str
    width: str
    text: str
    title: str
    tone: str
    address: str
    is_shown: bool


def life_strip(tree: LoadedTree, full: TimeScale, part: TimeScale | None, view_model: RunViewModel) -> dict[str, Any]:
    """Return the strip. `part`: the visible part of the scale, if the timeline is zoomed."""
    working = [span for span in tree.spans if not is_held_type(span.type)]
    failed = [span for span in working if state_of(span.status) == FAILED]
    return {
        "bands": [_life_band(life, full, view_model, tree) for life in view_model.lives if life.begin <= full.end],
        "columns": _load_columns(working, full),
        "failures": sorted({f"{full.percent_of(span.end):.1f}%" for span in failed}),
        "gaps": full.axis_gaps(),
        "part": full.extent(part.begin, part.end) if part else None,
        "points": axis_points(full, full.begin),
        "is_useful": len(view_model.lives) > 1 or len(tree.spans) > 1,
    }


def _life_band(life: RunLife, full: TimeScale, view_model: RunViewModel, tree: LoadedTree) -> LifeBand:
    end = min(life.end, full.end)
    left, width = full.extent(life.begin, end)
    name, duration = str(LIFE_NAMES.get(life.event, life.event)), format_duration(end - life.begin)
    by = _("by %(user)s") % {"user": life.by} if life.by and life.event else ""
    is_last = life is view_model.lives[-1]
    shown = tree.past.revision if tree.past else view_model.run.revision
    address = view_model.query.address(revision=None if is_last else life.last_revision, **{"from": None, "to": None})
    return LifeBand(
        left,
        width,
        f"{name} · {duration}" if len(view_model.lives) > 1 else "",
        " · ".join(filter(None, (name, by, format_status(life.status), duration))),
        status_tone(life.status),
        address if len(view_model.lives) > 1 else "",
        shown == life.last_revision,
    )


def _load_columns(spans: list[TaskSpan], scale: TimeScale) -> list[tuple[str, str, int, int]]:
    """Return the number of open tasks over time as columns: left edge, width, top and height."""
    changes = [0] * (COLUMNS + 1)
    for span in spans:
        # A column counts the tasks that are open at its middle. A shorter task counts in the column of its start.
        begin, end = (scale.percent_of(moment) * COLUMNS / 100 for moment in (span.begin, span.end))
        first = min(ceil(begin - 0.5), COLUMNS - 1)
        last = min(max(ceil(end - 0.5) - 1, first), COLUMNS - 1)
        changes[first] += 1
        changes[last + 1] -= 1
    loads, load = [], 0
    for change in changes[:-1]:
        load += change
        loads.append(load)
    most = max([*loads, 1])
    found = []
    begin = 0
    for number in range(1, COLUMNS + 1):
        if number < COLUMNS and loads[number] == loads[begin]:
            continue
        if loads[begin]:
            height = max(round(HEIGHT * loads[begin] / most), 3)
            left, width = 100 * begin / COLUMNS, 100 * (number - begin) / COLUMNS
            found.append((f"{left:.2f}%", f"{width:.2f}%", HEIGHT - height, height))
        begin = number
    return found


MAX_HISTORY = 100
MAX_PAST_TASKS = 100
"""Number of tasks of an old revision that the page lists."""


def run_events(view_model: RunViewModel) -> dict[str, Any]:
    """Return the history: each decision with its actor and its reason."""
    before = view_model.query.number("before")
    rows = HistoryEntry.objects.filter(run_id=view_model.run.pk).order_by("-revision")
    entries = list((rows.filter(revision__lt=before) if before else rows)[: MAX_HISTORY + 1])
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
