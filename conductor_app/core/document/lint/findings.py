"""What a reader of a definition would say about it, and what has to be known beside the document to say it."""

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
UNUSABLE_SCHEMA = "unusable schema"

BROKEN = frozenset((UNKNOWN_REFERENCE, UNKNOWN_NAME, NAME_CLASH, UNREADABLE, REFUSED, UNJOINED))
"""What makes a definition one that cannot do what it says."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One thing to say: how grave it is, which kind of thing, where, and in words.

    `meant`: the name that was probably meant; `written`: what it would replace.
    """

    severity: str
    kind: str
    path: str
    message: str
    written: str = ""
    meant: str = ""


@dataclass(frozen=True)
class PayloadShape:
    """What is known of a payload: the members of a map, and whose word that is; without members, anything goes."""

    members: Mapping[str, "PayloadShape"] | None = None
    source: str = ""

    def member(self, name: str) -> "PayloadShape | None":
        """The shape under a name, None where there is none by what is known."""
        return ANYTHING if self.members is None else self.members.get(name)


ANYTHING = PayloadShape()


@dataclass(frozen=True)
class LintContext:
    """What stands beside the document: other definitions by name, what tasks gave lately, who works.

    `outputs` and `workflow_outputs` hold the shapes of what tasks and workflows give, as far as they are known;
    `tasks` is None where nobody knows which there are. `received`: the workflows that webhooks name as receivers.
    """

    tasks: Mapping[str, Mapping[str, Any]] | None = None
    workflows: Mapping[str, frozenset[int]] | None = None
    outputs: Mapping[str, PayloadShape] = field(default_factory=dict)
    workflow_outputs: Mapping[str, PayloadShape] = field(default_factory=dict)
    worked: frozenset[str] | None = None
    bare_names: frozenset[str] = frozenset()
    received: frozenset[str] | None = None


def closest_name(name: str, known: Any) -> str:
    """The known name that is most like this one, or nothing."""
    known = [each for each in known if each != name]
    same = [each for each in known if each.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, sorted(known), 1, 0.6)), "")


def did_you_mean(near: str) -> str:
    """The end of a complaint that knows better."""
    return f" Did you mean `{near}`?" if near else ""
