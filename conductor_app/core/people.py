"""What a HUMAN step says of the person whom it waits for: a title, a question, and who is asked, one after another.

The words are those of `__humanTaskDefinition` in the step's input, as Conductor's clients write it:

    {"displayName": "Approve the order", "question": "Is the customer known?", "assignments": [
        {"assignee": {"userType": "CONDUCTOR_USER", "user": "ann"}, "slaMinutes": 30},
        {"assignee": {"userType": "CONDUCTOR_GROUP", "user": "sales"}, "slaMinutes": 60}]}

The form of the answer is drawn from a JSON schema: `jsonSchema` beside these words, or in their `userFormTemplate`.
Whoever has let their minutes pass is followed by the next; when the last have passed, the task is overdue.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

NAME = "__humanTaskDefinition"
TEMPLATES = ("userFormTemplate", "fullTemplate")
MINUTE_MS = 60_000
LONGEST = 255
MOST_MINUTES = 60 * 24 * 366 * 10


@dataclass(frozen=True, slots=True)
class Assignee:
    """One who is asked: a person, or everybody of a group; `minutes`: for how long, 0 is without end."""

    who: str
    is_group: bool = False
    minutes: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and of whom in turn."""

    title: str = ""
    text: str = ""
    assignees: tuple[Assignee, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """Who is asked at a moment; `due_at`: when their time is over; `escalated`: how many let theirs pass before."""

    assignee: Assignee | None = None
    due_at: int | None = None
    escalated: int = 0


def question(input: Mapping[str, Any]) -> Question:
    """The question in an input; whatever is not as it should be is left out."""
    said = input.get(NAME)
    said = said if isinstance(said, Mapping) else {}
    asked = said.get("assignments")
    found = [_assignee(each) for each in asked] if isinstance(asked, list) else []
    title, text = _text(said.get("displayName")), _text(said.get("question")) or _text(input.get("question"))
    return Question(title, text, tuple(each for each in found if each is not None))


def schema_of(input: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON schema of the answer that an input asks for; empty where it names none."""
    said = input.get(NAME)
    said = said if isinstance(said, Mapping) else {}
    places = (said, *(said.get(name) for name in TEMPLATES))
    found = (place.get("jsonSchema") for place in places if isinstance(place, Mapping))
    return next((schema for schema in found if isinstance(schema, Mapping)), {})


def standing(asked: Question, since: int, now: int) -> Standing:
    """Who is asked now, of those who have been asked in turn since a moment."""
    found, begins = Standing(), since
    for place, assignee in enumerate(asked.assignees):
        due_at = begins + assignee.minutes * MINUTE_MS if assignee.minutes else None
        found = Standing(assignee, due_at, place)
        if due_at is None or now < due_at:
            break
        begins = due_at
    return found


def given(to: Assignee, due_at: int | None) -> Standing:
    """Who is asked once somebody has handed the task on."""
    return replace(Standing(), assignee=to if to.who else None, due_at=due_at)


def _assignee(said: Any) -> Assignee | None:
    to = said.get("assignee") if isinstance(said, Mapping) else None
    if not isinstance(to, Mapping) or not (who := _text(to.get("user"))):
        return None
    minutes = said.get("slaMinutes")
    sane = isinstance(minutes, int) and not isinstance(minutes, bool) and 0 < minutes < MOST_MINUTES
    return Assignee(who, _text(to.get("userType")).endswith("GROUP"), minutes if sane else 0)


def _text(value: Any) -> str:
    return value.strip()[:LONGEST] if isinstance(value, str) else ""
