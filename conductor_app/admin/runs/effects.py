"""The lines of history in words: one short sentence for each effect that a decision had."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from ...core.effects import effect_name
from ...insight.attempt_waits import first_line
from ..badges import mark_names

MAX_SENTENCES = 12
EffectLine = dict[str, Any]
PAST_TENSE = {
    "cancel": gettext_lazy("canceled"),
    "complete": gettext_lazy("completed"),
    "complete_with_errors": gettext_lazy("completed with errors"),
    "expire": gettext_lazy("timed out"),
    "fail": gettext_lazy("failed"),
    "fail_for_good": gettext_lazy("failed for good"),
    "hand_back": gettext_lazy("handed back"),
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
"""What has happened, for each event of core/states.py that a decision may have."""


def describe_effects(effects: Iterable[EffectLine]) -> list[SafeString]:
    """The sentences; many of one kind become a count."""
    lines = list(effects)
    sentences = [mark_names(_sentence(line)) for line in lines[:MAX_SENTENCES]]
    rest = Counter(effect_name(line) for line in lines[MAX_SENTENCES:])
    return sentences + [
        mark_names(_("%(count)s more × %(kind)s") % {"count": count, "kind": kind}) for kind, count in rest.items()
    ]


def _sentence(line: EffectLine) -> str:
    name = effect_name(line)
    return EFFECT_SENTENCES[name](line) if name in EFFECT_SENTENCES else name


def _transition_sentence(what: Any) -> Callable[[EffectLine], str]:
    """A sentence about a move: what moved, and how."""

    def say(line: EffectLine) -> str:
        event = str(line.get("event", ""))
        worker = _(", worker `%(worker)s`") % {"worker": line["worker"]} if line.get("worker") else ""
        moved = what % {"task": line.get("task", ""), "moved": PAST_TENSE.get(event, event)}
        return f"{moved}{worker}{_reason_suffix(line)}"

    return say


def _fact_sentence(sentence: Any, **names: str) -> Callable[[EffectLine], str]:
    """A sentence with facts of the line: what each is called in the sentence, and in the line."""
    return lambda line: sentence % {name: line.get(fact, "") for name, fact in names.items()}


def _reason_suffix(line: EffectLine) -> str:
    return f" — {first_line(str(line['reason']))}" if line.get("reason") else ""


def _requeue_sentence(line: EffectLine) -> str:
    task = {"task": line.get("task")}
    moved = _("`%(task)s` moved in its queue") % task
    queue = _(" to `%(queue)s`") % {"queue": line["queue"]} if line.get("queue") else ""
    return moved + queue + (_(", priority %(priority)s") % line if "priority" in line else "")


def _creation_sentence(line: EffectLine) -> str:
    facts = {"task": line.get("task"), "type": line.get("type"), "status": line.get("becomes") or line.get("status")}
    return _("`%(task)s` (%(type)s) created, %(status)s") % facts


def _attempt_sentence(line: EffectLine) -> str:
    return _("`%(task)s`: attempt %(number)s opened") % {"task": line.get("task"), "number": _attempt_number(line) + 1}


def _attempt_number(line: EffectLine) -> int:
    return int(line.get("number", 0))


def _deletion_sentence(line: EffectLine) -> str:
    count, tasks = int(line.get("count", 0)), _format_task_names(line.get("tasks", []))
    sentence = ngettext("%(count)s task taken back: %(tasks)s", "%(count)s tasks taken back: %(tasks)s", count)
    return sentence % {"count": count, "tasks": tasks}


def _list_sentence(sentence: Any, fact: str) -> Callable[[EffectLine], str]:
    return lambda line: sentence % {"names": ", ".join(map(str, line.get(fact, [])))}


def _format_task_names(tasks: list[Any]) -> str:
    return ", ".join(f"`{task}`" for task in tasks[:MAX_SENTENCES]) + (" …" if len(tasks) > MAX_SENTENCES else "")


EFFECT_SENTENCES: dict[str, Callable[[EffectLine], str]] = {
    "CreateTask": _creation_sentence,
    "OpenAttempt": _attempt_sentence,
    "TransitionAttempt": _transition_sentence(gettext_lazy("attempt of `%(task)s` %(moved)s")),
    "ResolveTask": _transition_sentence(gettext_lazy("`%(task)s` %(moved)s")),
    "RequeueAttempt": _requeue_sentence,
    "UpdateTask": _fact_sentence(gettext_lazy("`%(task)s` noted"), task="task"),
    "PruneIteration": _fact_sentence(
        gettext_lazy("turn %(turn)s of `%(loop)s` forgotten"), turn="iteration", loop="loop"
    ),
    "DeleteTasks": _deletion_sentence,
    "SetVariables": _list_sentence(gettext_lazy("variables set: %(names)s"), "names"),
    "TransitionRun": _transition_sentence(gettext_lazy("run %(moved)s")),
    "UpdateRun": _list_sentence(gettext_lazy("run noted: %(names)s"), "fields"),
    "StartRun": _fact_sentence(
        gettext_lazy("run of `%(name)s` v%(version)s started"), name="definition", version="version"
    ),
    "SendMessage": _fact_sentence(gettext_lazy("message sent: %(subject)s"), subject="subject"),
    "SwitchDefinition": _fact_sentence(
        gettext_lazy("goes on by version %(version)s of `%(name)s`"), name="definition", version="version"
    ),
}
"""What each effect of core/effects.py is called on the page; others are called by their names."""
