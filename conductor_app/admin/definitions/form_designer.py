"""Designer of the form of a human task: rows for the fields, which become the JSON schema of the answer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from ...core.human_task import ANSWER_SCHEMA_KEY, TEMPLATES, answer_schema, human_task_definition
from ...core.schema_form import (
    CHOICE,
    DATE,
    JSON,
    LONG,
    MOMENT,
    NUMBER,
    TEXT,
    WHOLE,
    YES_NO,
    build_form,
    format_value,
)
from .form_rows import NumberedRow
from .typed_text import parse_typed

PREFIX = "design"
OTHER = "other"
KINDS = {
    YES_NO: gettext_lazy("Yes or no"),
    TEXT: gettext_lazy("Text"),
    LONG: gettext_lazy("Long text"),
    CHOICE: gettext_lazy("Choice"),
    WHOLE: gettext_lazy("Whole number"),
    NUMBER: gettext_lazy("Number"),
    DATE: gettext_lazy("Date"),
    MOMENT: gettext_lazy("Date and time"),
    OTHER: gettext_lazy("Other (JSON)"),
}
SCHEMAS: dict[str, dict[str, Any]] = {
    YES_NO: {"type": "boolean"},
    TEXT: {"type": "string"},
    LONG: {"type": "string", "maxLength": 2_000},
    WHOLE: {"type": "integer"},
    NUMBER: {"type": "number"},
    DATE: {"type": "string", "format": "date"},
    MOMENT: {"type": "string", "format": "date-time"},
}
TYPE_KEYWORDS = ("type", "format", "enum", "maxLength")
MAX_FIELDS = 80


@dataclass(slots=True)
class DesignedField(NumberedRow):
    """One field of the form, as a row. `was`: its name before the edit."""

    prefix: str
    name: str = ""
    title: str = ""
    kind: str = TEXT
    is_required: bool = False
    choices: str = ""
    was: str = ""
    errors: list[str] = field(default_factory=list)


def designed_fields(inputs: Mapping[str, Any]) -> list[DesignedField]:
    """Return the rows for the schema in the inputs of a HUMAN step, and an empty row for another field.

    There are no rows for a schema that is too large for a form.
    """
    schema = answer_schema(inputs)
    properties = _properties(schema)
    if properties and not build_form(schema):
        return []
    rows = []
    for number, each in enumerate(build_form(schema)):
        kind = each.kind if each.kind in KINDS and each.kind != JSON else OTHER
        title = properties[each.key].get("title") if isinstance(properties[each.key], Mapping) else ""
        choices = ", ".join(map(format_value, each.choices))
        row = DesignedField(f"{PREFIX}.{number}", each.key, str(title or ""), kind, each.is_required, choices, each.key)
        rows.append(row)
    return [*rows, DesignedField(f"{PREFIX}.{len(rows)}")]


def submitted_fields(submitted: Mapping[str, str]) -> list[DesignedField]:
    """Return the rows of a submitted form."""
    return list(_read_fields(submitted))


def _read_fields(submitted: Mapping[str, str]) -> Iterator[DesignedField]:
    for number in range(MAX_FIELDS + 1):
        key = f"{PREFIX}.{number}"
        if f"{key}.name" not in submitted:
            return
        name, title, kind, choices, was = (
            submitted.get(f"{key}.{part}", "").strip() for part in ("name", "title", "kind", "choices", "was")
        )
        kind = kind if kind in KINDS else TEXT
        yield DesignedField(key, name, title, kind, f"{key}.required" in submitted, choices, was)


def design_schema(inputs: Mapping[str, Any], fields: list[DesignedField]) -> dict[str, Any]:
    """Return the inputs with the schema that the rows describe. Errors are added to their rows."""
    before = answer_schema(inputs)
    if not _properties(before) and not any(each.name for each in fields):
        return dict(inputs)
    properties: dict[str, Any] = {}
    for each in fields:
        if not each.name:
            continue
        if each.name in properties:
            each.errors.append(_("This name is used twice."))
        properties[each.name] = _property(_properties(before).get(each.was), each)
    named = before.get("required")
    texts = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    others = [name for name in texts if name not in _properties(before)]
    required = others + [each.name for each in fields if each.name and each.is_required]
    schema = {**before, "type": "object", "properties": properties, "required": required}
    if not required:
        del schema["required"]
    return _put_schema(inputs, schema)


def _property(before: Any, row: DesignedField) -> dict[str, Any]:
    part = dict(before) if isinstance(before, Mapping) else {}
    was_kind = build_form({"properties": {"x": part}})[0].kind if part else ""
    if row.kind not in (was_kind, OTHER):
        part = {name: value for name, value in part.items() if name not in TYPE_KEYWORDS} | SCHEMAS.get(row.kind, {})
    if row.kind == CHOICE:
        part["enum"] = [parse_typed(choice.strip()) for choice in row.choices.split(",") if choice.strip()]
        if not part["enum"]:
            row.errors.append(_("Enter the choices, comma-separated."))
    if row.title:
        part["title"] = row.title
    else:
        part.pop("title", None)
    return part


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _put_schema(inputs: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Put the schema where the inputs have it, otherwise into the question."""
    question = dict(human_task_definition(inputs))
    holder = next((name for name in TEMPLATES if _holds_schema(question.get(name))), "")
    if holder and not isinstance(question.get("jsonSchema"), Mapping):
        question[holder] = {**question[holder], "jsonSchema": schema}
    else:
        question["jsonSchema"] = schema
    return {**inputs, ANSWER_SCHEMA_KEY: question}


def _holds_schema(template: Any) -> bool:
    return isinstance(template, Mapping) and isinstance(template.get("jsonSchema"), Mapping)
