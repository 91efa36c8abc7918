"""Rows for the assignees of a human task, in their order: a user or a group, and the minutes until the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.human_task import (
    ANSWER_SCHEMA_KEY,
    MAX_MINUTES,
    USER_TYPES,
    Assignee,
    format_assignees,
    human_task_definition,
    parse_question,
)
from .form_rows import NumberedRow

PREFIX = "assignee"
MAX_ASSIGNEES = 50
USER_TYPE_LABELS = {
    "CONDUCTOR_USER": gettext_lazy("User"),
    "CONDUCTOR_GROUP": gettext_lazy("Group"),
    "EXTERNAL_USER": gettext_lazy("External user"),
    "EXTERNAL_GROUP": gettext_lazy("External group"),
}


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
        AssigneeRow(f"{PREFIX}.{number}", each.who, each.user_type, str(each.minutes or ""))
        for number, each in enumerate(parse_question(inputs).assignees[:MAX_ASSIGNEES])
    ]
    return [*rows, AssigneeRow(f"{PREFIX}.{len(rows)}")]


def submitted_assignees(submitted: Mapping[str, str]) -> list[AssigneeRow]:
    """Return the rows of a submitted form."""
    rows = []
    for number in range(MAX_ASSIGNEES + 1):
        key = f"{PREFIX}.{number}"
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
