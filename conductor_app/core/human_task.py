"""What a HUMAN step says of the person whom it waits for: a title, a question, and who is asked, one after another.

The words are those of `__humanTaskDefinition` in the step's input, as Conductor's clients write it:

    {"displayName": "Approve the order", "question": "Is the customer known?", "assignments": [
        {"assignee": {"userType": "CONDUCTOR_USER", "user": "ann"}, "slaMinutes": 30},
        {"assignee": {"userType": "CONDUCTOR_GROUP", "user": "sales"}, "slaMinutes": 60}]}

The form of the answer is drawn from a JSON schema: `jsonSchema` beside these words, or in their `userFormTemplate`,
which may also name a stored template by name and version. Whoever has let their minutes pass is followed by the next;
when the last have passed, the task is overdue, or timed out where `assignmentCompletionStrategy` is TERMINATE.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

ANSWER_SCHEMA_KEY = "__humanTaskDefinition"
TEMPLATES = ("userFormTemplate", "fullTemplate")
MINUTE_MS = 60_000
LONGEST = 255
MOST_MINUTES = 60 * 24 * 366 * 10
TERMINATE = "TERMINATE"
USER_TYPES = ("EXTERNAL_USER", "EXTERNAL_GROUP", "CONDUCTOR_USER", "CONDUCTOR_GROUP")
"""Who can be asked. External users and groups are known to the calling application only."""


@dataclass(frozen=True, slots=True)
class Assignee:
    """One who is asked: a person, or everybody of a group; `minutes`: for how long, 0 is without end.

    `is_external`: not known to this server, but to the application that acts for them.
    """

    who: str
    is_group: bool = False
    minutes: int = 0
    is_external: bool = False

    @property
    def user_type(self) -> str:
        """One of USER_TYPES."""
        return ("EXTERNAL_" if self.is_external else "CONDUCTOR_") + ("GROUP" if self.is_group else "USER")


@dataclass(frozen=True, slots=True)
class HumanQuestion:
    """What is asked, and of whom in turn."""

    title: str = ""
    text: str = ""
    assignees: tuple[Assignee, ...] = ()
    terminates: bool = False


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """Who is asked at a moment; `due_at`: when their time is over; `escalated`: how many let theirs pass before."""

    assignee: Assignee | None = None
    due_at: int | None = None
    escalated: int = 0


def parse_question(input: Mapping[str, Any]) -> HumanQuestion:
    """The question in an input; whatever is not as it should be is left out."""
    said = human_task_definition(input)
    asked = said.get("assignments")
    if not isinstance(asked, list):
        # The JavaScript SDK's builder writes a single assignee here.
        asked = [said]
    title, text = _text(said.get("displayName")), _text(said.get("question")) or _text(input.get("question"))
    terminates = said.get("assignmentCompletionStrategy") == TERMINATE
    return HumanQuestion(title, text, parse_assignees(asked), terminates)


def human_task_definition(input: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the human task definition in an input; empty where there is none."""
    said = input.get(ANSWER_SCHEMA_KEY)
    return said if isinstance(said, Mapping) else {}


def parse_assignees(said: Iterable[Any]) -> tuple[Assignee, ...]:
    """Read assignments as clients write them; leave out what is not understood."""
    return tuple(found for each in said if (found := _parse_assignee(each)) is not None)


def format_assignees(assignees: Iterable[Assignee]) -> list[dict[str, Any]]:
    """Write assignments as clients do."""
    return [
        {"assignee": {"userType": each.user_type, "user": each.who}, "slaMinutes": each.minutes} for each in assignees
    ]


def named_template(input: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return name and version of the stored form template that an input names; version 0 is the newest."""
    said = human_task_definition(input).get("userFormTemplate")
    if not isinstance(said, Mapping) or not (name := _text(said.get("name"))):
        return None
    version = said.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or not 0 < version < 2**31:
        return name, 0
    return name, version


def answer_schema(input: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON schema of the answer that an input asks for; empty where it names none."""
    said = human_task_definition(input)
    places = (said, *(said.get(name) for name in TEMPLATES))
    found = (place.get("jsonSchema") for place in places if isinstance(place, Mapping))
    return next((schema for schema in found if isinstance(schema, Mapping)), {})


def current_assignment(asked: HumanQuestion, since: int, now: int) -> CurrentAssignment:
    """Who is asked now, of those who have been asked in turn since a moment."""
    found, begins = CurrentAssignment(), since
    for place, assignee in enumerate(asked.assignees):
        due_at = begins + assignee.minutes * MINUTE_MS if assignee.minutes else None
        found = CurrentAssignment(assignee, due_at, place)
        if due_at is None or now < due_at:
            break
        begins = due_at
    return found


def delegated_assignment(
    to: Assignee, due_at: int | None, followers: Sequence[Assignee] = (), now: int = 0
) -> CurrentAssignment:
    """Who is asked once somebody has handed the task on; `followers` are asked when that time is over."""
    if followers and due_at is not None and now >= due_at:
        later = current_assignment(HumanQuestion(assignees=tuple(followers)), due_at, now)
        return replace(later, escalated=later.escalated + 1)
    return replace(CurrentAssignment(), assignee=to if to.who else None, due_at=due_at)


def last_assignment_ends_at(assignees: Iterable[Assignee], since: int) -> int | None:
    """Return when the last assignment is over, in epoch milliseconds; None where one is without end, or none is."""
    minutes = [each.minutes for each in assignees]
    return since + sum(minutes) * MINUTE_MS if minutes and all(minutes) else None


def _parse_assignee(said: Any) -> Assignee | None:
    to = said.get("assignee") if isinstance(said, Mapping) else None
    if not isinstance(to, Mapping) or not (who := _text(to.get("user"))):
        return None
    minutes = said.get("slaMinutes")
    sane = isinstance(minutes, int) and not isinstance(minutes, bool) and 0 < minutes < MOST_MINUTES
    kind = _text(to.get("userType"))
    return Assignee(who, kind.endswith("GROUP"), minutes if sane else 0, kind.startswith("EXTERNAL"))


def _text(value: Any) -> str:
    return value.strip()[:LONGEST] if isinstance(value, str) else ""
