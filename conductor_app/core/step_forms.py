"""What a step type declares for the editor: a sample that a new step copies, and the fields of its form.

The classes of step types have it as `label`, `summary`, `sample` and `members`. Texts are marked for translation; a
page translates them when it shows them, because the core imports no Django.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .schemas import CHOICE, TEXT


def gettext_noop(text: str) -> str:
    """Mark a text for translation: `makemessages` finds the calls of a function with this name."""
    return text


TYPED, LONG_TYPED, NAMES, ROWS = "typed", "long typed", "names", "rows"
"""Kinds of members: any JSON value as text, on one line or several, a list of names, and an object in rows."""
REFERENCES, TASKS, WORKFLOWS, STEPS = "references", "tasks", "workflows", "steps"
"""Lists of suggestions that depend on the definition and on the server."""
SCRIPT_LABELS = {
    "value-param": gettext_noop("Value of an input"),
    "javascript": "JavaScript",
    "graaljs": "JavaScript (graaljs)",
    "python": "Python",
}
SCRIPT_LANGUAGES = tuple(SCRIPT_LABELS)
STATUS_LABELS = {
    "COMPLETED": gettext_noop("Completed"),
    "FAILED": gettext_noop("Failed"),
    "FAILED_WITH_TERMINAL_ERROR": gettext_noop("Failed, without another attempt"),
    "TERMINATED": gettext_noop("Terminated"),
}
TASK_STATUSES = ("COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR")
RUN_STATUSES = ("COMPLETED", "FAILED", "TERMINATED")
ITEM_FAILURE_LABELS = {
    "FAIL": gettext_noop("The step fails, and the other items are canceled"),
    "CONTINUE": gettext_noop("The other items continue"),
}
STATIC_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "methods": ("GET", "POST", "PUT", "PATCH", "DELETE"),
}
"""The other lists of suggestions."""
DEFAULT_ITERATIONS = 3
SCRIPT_HELP = gettext_noop("The name of an input, or a script that reads the inputs from $.")


@dataclass(frozen=True, slots=True)
class StepMember:
    """A member of a step that the form edits. `place`: its keys, joined by dots. `options`: a list of suggestions."""

    place: str
    label: str
    kind: str = TEXT
    help: str = ""
    choices: tuple[str, ...] = ()
    options: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.place.split("."))


def input_member(name: str, label: str, kind: str = TYPED, options: str = REFERENCES, help: str = "") -> StepMember:
    return StepMember(f"inputParameters.{name}", label, kind, help, options=options)


def choice_member(name: str, label: str, choices: Iterable[str]) -> StepMember:
    return StepMember(f"inputParameters.{name}", label, CHOICE, choices=tuple(choices))


def step_of(type: str, ref: str, **fields: Any) -> dict[str, Any]:
    return {"name": ref, "taskReferenceName": ref, "type": type, **fields}


def loop_condition(ref: str, times: int) -> str:
    """Return the condition of a loop that ends after a number of iterations."""
    return f"if ($.{ref}['iteration'] < {times}) {{ true; }} else {{ false; }}"
