"""The lines of history in words: one short sentence for each effect that a decision had."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from django.utils.safestring import SafeString

from ...insight.waits import first_line
from ..marks import marked

MOST = 12
Line = dict[str, Any]
PAST = {
    "cancel": "canceled",
    "complete": "completed",
    "complete_with_errors": "completed with errors",
    "expire": "timed out",
    "fail": "failed",
    "fail_for_good": "failed for good",
    "hand_back": "handed back",
    "pause": "paused",
    "reopen": "reopened",
    "rerun": "rerun",
    "restart": "restarted",
    "retry": "retried",
    "renew": "renewed",
    "resume": "resumed",
    "skip": "skipped",
    "terminate": "terminated",
    "time_out": "timed out",
}
"""What has happened, for each event of core/states.py that a decision may have."""


def in_words(effects: Iterable[Line]) -> list[SafeString]:
    """The sentences; many of one kind become a count."""
    lines = list(effects)
    shown = [marked(_sentence(line)) for line in lines[:MOST]]
    rest = Counter(str(line.get("effect")) for line in lines[MOST:])
    return shown + [marked(f"{count} more × {kind}") for kind, count in rest.items()]


def _sentence(line: Line) -> str:
    say = WORDS.get(str(line.get("effect")))
    return say(line) if say else str(line.get("effect"))


def _moved(what: str) -> Callable[[Line], str]:
    def say(line: Line) -> str:
        event = str(line.get("event", ""))
        worker = f", worker `{line['worker']}`" if line.get("worker") else ""
        return f"{what.format(task=line.get('task', ''))} {PAST.get(event, event)}{worker}{_because(line)}"

    return say


def _because(line: Line) -> str:
    return f" — {first_line(str(line['reason']))}" if line.get("reason") else ""


def _moved_to(line: Line) -> str:
    queue = f" to `{line['queue']}`" if line.get("queue") else ""
    return queue + (f", priority {line['priority']}" if "priority" in line else "")


def _named(tasks: list[Any]) -> str:
    return ", ".join(f"`{task}`" for task in tasks[:MOST]) + (" …" if len(tasks) > MOST else "")


WORDS: dict[str, Callable[[Line], str]] = {
    "CreateTask": lambda line: f"`{line.get('task')}` ({line.get('type')}) created, {line.get('status')}",
    "OpenAttempt": lambda line: f"`{line.get('task')}`: attempt {int(line.get('number', 0)) + 1} opened",
    "MoveAttempt": _moved("attempt of `{task}`"),
    "ResolveTask": _moved("`{task}`"),
    "Requeue": lambda line: f"`{line.get('task')}` moved in its queue{_moved_to(line)}",
    "UpdateTask": lambda line: f"`{line.get('task')}` noted",
    "ForgetTasks": lambda line: f"turn {line.get('iteration')} of `{line.get('loop')}` forgotten",
    "TakeBack": lambda line: f"{line.get('count')} tasks taken back: {_named(line.get('tasks', []))}",
    "SetVariables": lambda line: f"variables set: {', '.join(map(str, line.get('names', [])))}",
    "MoveRun": _moved("run"),
    "UpdateRun": lambda line: f"run noted: {', '.join(map(str, line.get('fields', [])))}",
    "StartRun": lambda line: f"run of `{line.get('definition')}` v{line.get('version')} started",
    "Send": lambda line: f"message sent: {line.get('subject')}",
}
