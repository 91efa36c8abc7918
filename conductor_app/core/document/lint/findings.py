"""Lint findings on a definition, and the context that they need beside the document."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

ERROR, WARNING, HINT = "error", "warning", "hint"

UNKNOWN_REFERENCE = "unknown reference"
UNKNOWN_OUTPUT = "unknown output"
UNKNOWN_INPUT = "unknown input"
UNKNOWN_NAME = "unknown name"
TOO_EARLY = "not there yet"
UNREACHABLE = "unreachable"
UNJOINED = "join"
NO_TIMEOUT = "no timeout"
NO_DEFINITION = "no task definition"
NO_WORKER = "no worker"
NAME_CLASH = "name clash"
UNREADABLE = "unreadable"
REFUSED = "refused"
NO_RESULT = "no result"
UNKNOWN_FIELD = "unknown field"
UNUSABLE_SCHEMA = "unusable schema"

BROKEN = frozenset((UNKNOWN_REFERENCE, UNKNOWN_NAME, NAME_CLASH, UNREADABLE, REFUSED, UNJOINED))
"""The codes of findings for definitions that cannot work as intended."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A finding: severity, code, position and message.

    `meant`: the name that was probably meant; `written`: the text that it would replace.
    """

    severity: str
    kind: str
    path: str
    message: str
    written: str = ""
    meant: str = ""


@dataclass(frozen=True)
class PayloadShape:
    """Known shape of a payload: the members of a map and the source of this knowledge.

    Without members, any value is possible.
    """

    members: Mapping[str, "PayloadShape"] | None = None
    source: str = ""

    def member(self, name: str) -> "PayloadShape | None":
        """Return the shape of a member, or None if the member is known not to exist."""
        return ANYTHING if self.members is None else self.members.get(name)


ANYTHING = PayloadShape()


@dataclass(frozen=True)
class LintContext:
    """The context of lint: other definitions by name, recent outputs of tasks, active workers.

    `outputs` and `workflow_outputs` hold the known shapes of the outputs of tasks and workflows; `tasks` is None if
    they are unknown. `received`: the workflows that webhooks name as receivers. `integrations`: the models of each
    integration. `prompts`: the names of prompts.
    """

    tasks: Mapping[str, Mapping[str, Any]] | None = None
    workflows: Mapping[str, frozenset[int]] | None = None
    outputs: Mapping[str, PayloadShape] = field(default_factory=dict)
    workflow_outputs: Mapping[str, PayloadShape] = field(default_factory=dict)
    worked: frozenset[str] | None = None
    bare_names: frozenset[str] = frozenset()
    received: frozenset[str] | None = None
    integrations: Mapping[str, frozenset[str]] | None = None
    prompts: frozenset[str] | None = None


MAX_COMPARED_NAMES = 1_000
"""The number of known names from which on none is suggested: comparing a name with 1,000 others takes 3 ms."""


def closest_name(name: str, known: Any) -> str:
    """Return the most similar known name, or "" if there is none or too many to compare."""
    known = [each for each in known if each != name]
    if len(known) > MAX_COMPARED_NAMES:
        return ""
    same = [each for each in known if each.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, sorted(known), 1, 0.6)), "")


def did_you_mean(near: str) -> str:
    """Return a suggestion to append to a message, or ""."""
    return f" Did you mean `{near}`?" if near else ""
