"""The history of a run: its decisions in words."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.definition import Definition, Key, possible_keys
from ...core.failure_grouping import informative_line
from ...definitions.store import parsed_definition
from ...utils.formatting import LazyText, format_task_name
from ...web.badges import format_status, mark_names, relative_time
from ..models import HistoryEntry
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


MAX_HISTORY = 100


def run_events(view_model: RunViewModel) -> dict[str, Any]:
    """Return the history: each decision with its actor and its reason."""
    before = view_model.query.number("before")
    rows = HistoryEntry.objects.filter(run_id=view_model.run.pk).order_by("-revision")
    entries = list((rows.filter(revision__lt=before) if before else rows)[: MAX_HISTORY + 1])
    visible = entries[:MAX_HISTORY]
    return {
        "history": [_history_row(entry, view_model) for entry in visible],
        "earlier": view_model.query.address(before=visible[-1].revision) if len(entries) > MAX_HISTORY else "",
        "newest": view_model.query.address() if before else "",
    }


def _history_row(entry: HistoryEntry, view_model: RunViewModel) -> dict[str, Any]:
    definition = parsed_definition(view_model.run.resolved_definition_id)
    effects = describe_effects(_with_labels(line, definition) for line in entry.effects)
    return {
        "entry": entry,
        "at": relative_time(entry.at),
        "effects": effects or [_no_effect_sentence(entry, view_model)],
    }


def _with_labels(line: EffectLine, definition: Definition | None) -> EffectLine:
    """Return the line of an effect with the names of its tasks in words."""

    def label(name: str) -> str:
        found = (key for key in possible_keys(name) if definition and definition.step(key.ref))
        key = next(found, Key(name))
        return format_task_name(key.ref, ".".join(map(str, key.iteration_path)))

    named = {"task": label(line["task"])} if line.get("task") else {}
    return {**line, **named, "tasks": [label(str(name)) for name in line.get("tasks", [])]}


def _no_effect_sentence(entry: HistoryEntry, view_model: RunViewModel) -> SafeString:
    """Return the sentence for a decision without effects on tasks: a delayed start, or an early check."""
    if entry.revision == 1 and view_model.run.created_at > entry.at:
        return format_html(_("start requested, begins {}"), relative_time(view_model.run.created_at))
    return format_html(_("checked, nothing to do yet"))
