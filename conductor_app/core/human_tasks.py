"""The definition of a HUMAN task: its title, its question and its assignees in order, and the templates of its form.

The definition is the value of `__humanTaskDefinition` in the step's input, as Conductor's clients write it:

    {"displayName": "Approve the order", "question": "Is the customer known?", "assignments": [
        {"assignee": {"userType": "CONDUCTOR_USER", "user": "ann"}, "slaMinutes": 30},
        {"assignee": {"userType": "CONDUCTOR_GROUP", "user": "sales"}, "slaMinutes": 60}]}

`jsonSchema` in it, or in its `userFormTemplate`, describes the form of the answer. `userFormTemplate` may also name a
stored template by name and version. When the minutes of an assignee have passed, the next one is assigned. After the
last one the task is overdue, or times out if `assignmentCompletionStrategy` is TERMINATE.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .document.fields import (
    DocumentPosition,
    FieldSpec,
    FieldTable,
    IntegerOf,
    read_any,
    read_document,
    read_mapping,
    read_text,
)
from .errors import ValidationError
from .primitives import JsonValue

APPROVAL_SCHEMA = {
    "type": "object",
    "required": ["approved"],
    "properties": {"approved": {"type": "boolean", "title": "Approved?"}},
}
"""The schema of the answers of a new form and of a new human task."""
ANSWER_SCHEMA_KEY = "__humanTaskDefinition"
TEMPLATES = ("userFormTemplate", "fullTemplate")
MINUTE_MS = 60_000
MAX_LENGTH = 255
MAX_MINUTES = 60 * 24 * 366 * 10
TERMINATE = "TERMINATE"
USER_TYPES = ("EXTERNAL_USER", "EXTERNAL_GROUP", "CONDUCTOR_USER", "CONDUCTOR_GROUP")
"""Types of assignees. Only the calling application knows external users and groups."""


@dataclass(frozen=True, slots=True)
class Assignee:
    """A user or group that a task is assigned to. `minutes`: duration of the assignment, 0 for no limit.

    `is_external`: known to the calling application, not to this server.
    """

    who: str
    is_group: bool = False
    minutes: int = 0
    is_external: bool = False

    @property
    def user_type(self) -> str:
        """Return the type of the assignee, one of USER_TYPES."""
        return ("EXTERNAL_" if self.is_external else "CONDUCTOR_") + ("GROUP" if self.is_group else "USER")


@dataclass(frozen=True, slots=True)
class HumanQuestion:
    """Question of a HUMAN task, with its assignees in order."""

    title: str = ""
    text: str = ""
    assignees: tuple[Assignee, ...] = ()
    terminates: bool = False


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """Assignment at a point in time.

    `due_at`: when it ends. `escalated`: the number of assignees before, whose time passed.
    """

    assignee: Assignee | None = None
    due_at: int | None = None
    escalated: int = 0


def parse_question(input: Mapping[str, Any]) -> HumanQuestion:
    """Return the question in an input. Malformed parts are ignored."""
    definition = human_task_definition(input)
    assignments = definition.get("assignments")
    if not isinstance(assignments, list):
        # The JavaScript SDK's builder writes a single assignee here.
        assignments = [definition]
    title = _text(definition.get("displayName"))
    text = _text(definition.get("question")) or _text(input.get("question"))
    terminates = definition.get("assignmentCompletionStrategy") == TERMINATE
    return HumanQuestion(title, text, parse_assignees(assignments), terminates)


def human_task_definition(input: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the human task definition in an input; empty where there is none."""
    definition = input.get(ANSWER_SCHEMA_KEY)
    return definition if isinstance(definition, Mapping) else {}


def parse_assignees(assignments: Iterable[Any]) -> tuple[Assignee, ...]:
    """Parse assignments as clients write them. Malformed ones are ignored."""
    return tuple(found for each in assignments if (found := _parse_assignee(each)) is not None)


def format_assignees(assignees: Iterable[Assignee]) -> list[dict[str, Any]]:
    return [
        {"assignee": {"userType": each.user_type, "user": each.who}, "slaMinutes": each.minutes} for each in assignees
    ]


def named_template(input: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the name and version of the stored form template that an input names; version 0 is the newest."""
    template = human_task_definition(input).get("userFormTemplate")
    if not isinstance(template, Mapping) or not (name := _text(template.get("name"))):
        return None
    version = template.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or not 0 < version < 2**31:
        return name, 0
    return name, version


def answer_schema(input: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON schema of the answer; empty if the input names none."""
    definition = human_task_definition(input)
    places = (definition, *(definition.get(name) for name in TEMPLATES))
    found = (place.get("jsonSchema") for place in places if isinstance(place, Mapping))
    return next((schema for schema in found if isinstance(schema, Mapping)), {})


def answer_fields(step: Mapping[str, Any]) -> list[str]:
    """Return the names of the answers that a HUMAN step asks for, as far as its definition contains the form."""
    inputs = step.get("inputParameters")
    properties = answer_schema(inputs).get("properties") if isinstance(inputs, Mapping) else None
    return list(map(str, properties)) if isinstance(properties, Mapping) else []


def current_assignment(question: HumanQuestion, since: int, now: int) -> CurrentAssignment:
    """Return the assignment at `now`, counted from `since`, both in epoch milliseconds."""
    found, begins = CurrentAssignment(), since
    for place, assignee in enumerate(question.assignees):
        due_at = begins + assignee.minutes * MINUTE_MS if assignee.minutes else None
        found = CurrentAssignment(assignee, due_at, place)
        if due_at is None or now < due_at:
            break
        begins = due_at
    return found


def delegated_assignment(
    to: Assignee, due_at: int | None, followers: Sequence[Assignee] = (), now: int = 0
) -> CurrentAssignment:
    """Return the assignment after a delegation. When it ends, `followers` are assigned in order."""
    if followers and due_at is not None and now >= due_at:
        later = current_assignment(HumanQuestion(assignees=tuple(followers)), due_at, now)
        return replace(later, escalated=later.escalated + 1)
    return replace(CurrentAssignment(), assignee=to if to.who else None, due_at=due_at)


def last_assignment_ends_at(assignees: Iterable[Assignee], since: int) -> int | None:
    """Return when the last assignment ends, in epoch milliseconds; None if one has no limit, or there are none."""
    minutes = [each.minutes for each in assignees]
    return since + sum(minutes) * MINUTE_MS if minutes and all(minutes) else None


def _parse_assignee(assignment: Any) -> Assignee | None:
    to = assignment.get("assignee") if isinstance(assignment, Mapping) else None
    if not isinstance(to, Mapping) or not (who := _text(to.get("user"))):
        return None
    minutes = assignment.get("slaMinutes")
    is_valid = isinstance(minutes, int) and not isinstance(minutes, bool) and 0 < minutes < MAX_MINUTES
    kind = _text(to.get("userType"))
    return Assignee(who, kind.endswith("GROUP"), minutes if is_valid else 0, kind.startswith("EXTERNAL"))


def _text(value: JsonValue) -> str:
    return value.strip()[:MAX_LENGTH] if isinstance(value, str) else ""


MAX_ELEMENTS = 2_000
CONTROL = "Control"
FORM_TEMPLATE: FieldTable = (
    FieldSpec("name", read_text),
    FieldSpec("version", IntegerOf(), 0),
    FieldSpec("jsonSchema", read_mapping),
    FieldSpec("templateUI", read_mapping),
    FieldSpec("ownerApp", read_text, ""),
    FieldSpec("tags", read_any, list),
)
"""Fields of a template that a client can set."""


def read_form_template(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return the template with every field as its type, and its errors.

    The caller checks that `jsonSchema` is a usable JSON schema.
    """
    place = DocumentPosition()
    read = read_document(dict(document), FORM_TEMPLATE, place)
    name = read.get("name") or ""
    if not name.strip():
        place.at("name").add_missing("Template name cannot be null or empty", document.get("name"))
    elif len(name) > MAX_LENGTH:
        place.at("name").add_error(f"must have at most {MAX_LENGTH} characters", name)
    if read.get("version", 0) < 0:
        place.at("version").add_error("must be greater than or equal to 1", read["version"])
    for part in ("jsonSchema", "templateUI"):
        if read.get(part) is None:
            place.at(part).add_missing(f"Template {part} cannot be null: provide a JSON object")
    validation_errors = list(place.validation_errors)
    if isinstance(read.get("jsonSchema"), dict) and isinstance(read.get("templateUI"), dict):
        validation_errors += layout_errors(read["templateUI"], read["jsonSchema"])
    return read, validation_errors


def layout_errors(layout: Mapping[str, Any], schema: Mapping[str, Any]) -> list[ValidationError]:
    """Return the errors of a JSON Forms layout. An empty layout renders the schema as is."""
    return list(_layout_errors(layout, schema)) if layout else []


def _layout_errors(layout: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    left: list[tuple[str, Any]] = [("templateUI", layout)]
    for seen in range(MAX_ELEMENTS + 1):
        if not left:
            return
        if seen == MAX_ELEMENTS:
            yield ValidationError("templateUI", f"must have at most {MAX_ELEMENTS:,} elements")
            return
        path, element = left.pop()
        if not isinstance(element, Mapping):
            yield ValidationError(path, "must be a JSON object")
            continue
        if not isinstance(element.get("type"), str) or not element["type"]:
            yield ValidationError(
                f"{path}.type", "must name the type of the element, such as VerticalLayout or Control"
            )
        yield from _scope_errors(path, element, schema)
        inner = element.get("elements", [])
        if not isinstance(inner, list):
            yield ValidationError(f"{path}.elements", "must be a list")
            continue
        left += [(f"{path}.elements[{number}]", each) for number, each in reversed(list(enumerate(inner)))]


def _scope_errors(path: str, element: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    scope = element.get("scope")
    if scope is None and element.get("type") != CONTROL:
        return
    if not isinstance(scope, str) or not scope.startswith("#"):
        yield ValidationError(f"{path}.scope", "must point into jsonSchema, such as #/properties/name", scope)
    elif not _points_into_schema(scope, schema):
        yield ValidationError(f"{path}.scope", f"names no member of jsonSchema: {scope[:200]}", scope)


def _points_into_schema(scope: str, schema: Mapping[str, Any]) -> bool:
    found: Any = schema
    for step in scope.lstrip("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and "$ref" in found:
            # The validator follows references.
            return True
        if isinstance(found, Mapping) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return False
    return True
