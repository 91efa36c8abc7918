"""Rows in the form of a step: the handlers of a TRY_CATCH step, and the assignees of a human task."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.definition import as_steps, walk
from ...core.human_tasks import (
    ANSWER_SCHEMA_KEY,
    MAX_MINUTES,
    USER_TYPES,
    Assignee,
    format_assignees,
    human_task_definition,
    parse_question,
)
from ...core.primitives import JsonValue
from ...core.step_types.try_catch import MATCHED, match_errors
from ...web.forms import NumberedRow

HANDLER_PREFIX = "handler"
MAX_HANDLERS = 50
ASSIGNEE_PREFIX = "assignee"
MAX_ASSIGNEES = 50
USER_TYPE_LABELS = {
    "CONDUCTOR_USER": gettext_lazy("User"),
    "CONDUCTOR_GROUP": gettext_lazy("Group"),
    "EXTERNAL_USER": gettext_lazy("External user"),
    "EXTERNAL_GROUP": gettext_lazy("External group"),
}


@dataclass(slots=True)
class HandlerRow(NumberedRow):
    """One handler. `texts`: by member of its `match`. `number`: its index before the edit; empty for a new one."""

    prefix: str
    number: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    is_removed: bool = False
    errors: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.texts.get("status", "")

    @property
    def reason(self) -> str:
        return self.texts.get("reason", "")

    @property
    def task_refs(self) -> str:
        return self.texts.get("taskRef", "")

    @property
    def task_types(self) -> str:
        return self.texts.get("taskType", "")


def rows_of_handlers(step: Mapping[str, Any]) -> list[HandlerRow]:
    """Return the rows for a TRY_CATCH step, and an empty row for another handler."""
    cases = as_steps(step.get("catchCases"))[:MAX_HANDLERS]
    rows = [HandlerRow(f"{HANDLER_PREFIX}.{n}", str(n), _format_match(case)) for n, case in enumerate(cases)]
    return [*rows, HandlerRow(f"{HANDLER_PREFIX}.{len(rows)}")]


def submitted_handlers(submitted: Mapping[str, str]) -> list[HandlerRow]:
    rows = []
    for number in range(MAX_HANDLERS + 1):
        key = f"{HANDLER_PREFIX}.{number}"
        if f"{key}.number" not in submitted:
            break
        texts = {name: submitted.get(f"{key}.{name}", "").strip() for name in MATCHED}
        rows.append(HandlerRow(key, submitted[f"{key}.number"], texts, f"{key}.remove" in submitted))
    return rows


def apply_handlers(step: Mapping[str, Any], rows: list[HandlerRow]) -> list[Any]:
    """Return the handlers of the rows, followed by those that the form does not show. Errors are added to their rows.

    A handler whose texts are unchanged stays as it is written.
    """
    before = as_steps(step.get("catchCases"))
    refs = {spot.ref for spot in walk(as_steps(step.get("tryTasks")))}
    cases = []
    for row in rows:
        case = before[int(row.number)] if _is_index(row.number, before) else None
        if case is None and not any(row.texts.values()):
            continue
        if row.is_removed:
            if isinstance(case, Mapping) and case.get("tasks"):
                row.errors.append(_("Delete the steps of the handler first."))
            continue
        cases.append(_apply_row(case, row, refs))
    return [*cases, *before[MAX_HANDLERS:]]


def _apply_row(case: JsonValue, row: HandlerRow, refs: set[str]) -> Any:
    texts = {name: text for name, text in row.texts.items() if text}
    if case is not None and texts == _format_match(case):
        return case
    match = {name: _parse_texts(name, text) for name, text in texts.items()}
    row.errors.extend(match_errors(match, refs))
    others = dict(case) if isinstance(case, Mapping) else {"tasks": []}
    return {"match": match, **{name: value for name, value in others.items() if name != "match"}}


def _is_index(number: str, cases: list[Any]) -> bool:
    return number.isdecimal() and len(number) < 4 and int(number) < len(cases)


def _format_match(case: JsonValue) -> dict[str, str]:
    match = case.get("match") if isinstance(case, Mapping) else None
    if not isinstance(match, Mapping):
        return {}
    return {name: _format_texts(match[name]) for name in MATCHED if match.get(name) not in (None, "")}


def _format_texts(value: JsonValue) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _parse_texts(name: str, text: str) -> Any:
    if name == "reason":
        return text
    values = [each.strip() for each in text.split(",") if each.strip()]
    return values[0] if len(values) == 1 else values


@dataclass(slots=True)
class AssigneeRow(NumberedRow):
    """One assignee. `user_type`: one of USER_TYPES; `minutes`: as text, empty for no limit."""

    prefix: str
    who: str = ""
    user_type: str = "CONDUCTOR_USER"
    minutes: str = ""
    errors: list[str] = field(default_factory=list)


def rows_of_assignees(inputs: Mapping[str, Any]) -> list[AssigneeRow]:
    """Return the rows for the inputs of a HUMAN step, and an empty row for another assignee."""
    rows = [
        AssigneeRow(f"{ASSIGNEE_PREFIX}.{number}", each.who, each.user_type, str(each.minutes or ""))
        for number, each in enumerate(parse_question(inputs).assignees[:MAX_ASSIGNEES])
    ]
    return [*rows, AssigneeRow(f"{ASSIGNEE_PREFIX}.{len(rows)}")]


def submitted_assignees(submitted: Mapping[str, str]) -> list[AssigneeRow]:
    rows = []
    for number in range(MAX_ASSIGNEES + 1):
        key = f"{ASSIGNEE_PREFIX}.{number}"
        if f"{key}.who" not in submitted:
            break
        user_type = submitted.get(f"{key}.type", "")
        user_type = user_type if user_type in USER_TYPES else "CONDUCTOR_USER"
        minutes = submitted.get(f"{key}.minutes", "").strip()
        rows.append(AssigneeRow(key, submitted[f"{key}.who"].strip(), user_type, minutes))
    return rows


def assign(inputs: Mapping[str, Any], rows: list[AssigneeRow]) -> dict[str, Any]:
    """Return the inputs with the assignees of the rows. Errors are added to their rows."""
    assignees = tuple(_parse_row(row) for row in rows if row.who)
    before = parse_question(inputs).assignees
    if assignees == before[:MAX_ASSIGNEES]:
        return dict(inputs)
    question = {name: value for name, value in human_task_definition(inputs).items() if name != "assignee"}
    return {
        **inputs,
        ANSWER_SCHEMA_KEY: {**question, "assignments": format_assignees(assignees + before[MAX_ASSIGNEES:])},
    }


def _parse_row(row: AssigneeRow) -> Assignee:
    if row.minutes and not (row.minutes.isdecimal() and len(row.minutes) < 9 and 0 < int(row.minutes) < MAX_MINUTES):
        row.errors.append(_("Enter a whole number of minutes."))
        return Assignee(row.who)
    is_group, is_external = row.user_type.endswith("GROUP"), row.user_type.startswith("EXTERNAL")
    return Assignee(row.who, is_group, int(row.minutes or 0), is_external)
