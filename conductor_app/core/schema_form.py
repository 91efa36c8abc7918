"""A form from a JSON schema: one field for each value that a person can type, JSON for whatever is more than that.

What is typed becomes a document again: nothing typed is nothing given, so that defaults and requirements of the schema
keep their meaning.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

TEXT, NUMBER, WHOLE, YES_NO, CHOICE, DATE, MOMENT, LONG, JSON, GROUP = (
    "text", "number", "whole", "yes_no", "choice", "date", "moment", "long", "json", "group",
)  # fmt: skip
DEEPEST = 3
MOST_FIELDS = 80
LONG_FROM = 200
FORMATS = {"date": DATE, "date-time": MOMENT}
INPUT_TYPES = {TEXT: "text", NUMBER: "number", WHOLE: "number", DATE: "date", MOMENT: "text"}


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One value of the form. `name`: its place in the document, such as `input.address.city`."""

    name: str
    key: str
    kind: str
    label: str
    help: str = ""
    is_required: bool = False
    default: Any = None
    choices: tuple[Any, ...] = ()
    fields: tuple["SchemaField", ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def input_type(self) -> str:
        return INPUT_TYPES.get(self.kind, "text")


class UnreadableInput(Exception):
    """What was typed for one field is no value of its kind."""


def build_form(schema: Any, name: str = "input", depth: int = 0) -> tuple[SchemaField, ...]:
    """The fields of an object's schema; none where it describes no object with known members."""
    inner = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(inner, Mapping) or not inner or len(inner) > MOST_FIELDS:
        return ()
    required = schema.get("required")
    names = set(required) if isinstance(required, list) and all(isinstance(each, str) for each in required) else set()
    return tuple(_build_field(str(key), part, f"{name}.{key}", str(key) in names, depth) for key, part in inner.items())


def _build_field(key: str, schema: Any, name: str, is_required: bool, depth: int) -> SchemaField:
    part = schema if isinstance(schema, Mapping) else {}
    kind, fields = _field_kind(part, name, depth)
    return SchemaField(
        name=name,
        key=key,
        kind=kind,
        label=str(part.get("title") or key),
        help=str(part.get("description") or ""),
        is_required=is_required,
        default=part.get("default"),
        choices=tuple(part["enum"]) if kind == CHOICE else (),
        fields=fields,
        limits=dict(_input_limits(part)),
    )


def _field_kind(part: Mapping[str, Any], name: str, depth: int) -> tuple[str, tuple[SchemaField, ...]]:
    if isinstance(part.get("enum"), list) and part["enum"]:
        return CHOICE, ()
    match part.get("type"):
        case "string":
            longest = part.get("maxLength")
            is_long = isinstance(longest, int) and longest >= LONG_FROM
            return (LONG if is_long else FORMATS.get(str(part.get("format")), TEXT)), ()
        case "number":
            return NUMBER, ()
        case "integer":
            return WHOLE, ()
        case "boolean":
            return YES_NO, ()
        case "object" if depth < DEEPEST and (fields := build_form(part, name, depth + 1)):
            return GROUP, fields
    return JSON, ()


def _input_limits(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The limits that a browser can hold an input to."""
    for said, attribute in (("minimum", "min"), ("maximum", "max"), ("maxLength", "maxlength")):
        if isinstance(part.get(said), int | float) and not isinstance(part.get(said), bool):
            yield attribute, part[said]
    if isinstance(part.get("pattern"), str):
        yield "data-pattern", part["pattern"]


def parse_form(fields: tuple[SchemaField, ...], typed: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The document that was typed, and what is wrong, by the name of the field."""
    document: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for each in fields:
        if each.kind == GROUP:
            inner, faults = parse_form(each.fields, typed)
            wrong |= faults
            if inner:
                document[each.key] = inner
            continue
        text = typed.get(each.name, "")
        if not text.strip():
            continue
        try:
            document[each.key] = parse_field_value(each, text)
        except UnreadableInput as fault:
            wrong[each.name] = str(fault)
    return document, wrong


def parse_field_value(each: SchemaField, text: str) -> Any:
    """What a text means in this field; raises Unreadable."""
    try:
        match each.kind:
            case "number":
                value = json.loads(text)
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise UnreadableInput("This is not a number.")
                return value
            case "whole":
                return int(text)
            case "yes_no":
                return {"true": True, "false": False}[text]
            case "choice":
                return next(choice for choice in each.choices if format_value(choice) == text)
            case "json":
                return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as fault:
        where = f" at line {fault.lineno}, column {fault.colno}" if isinstance(fault, json.JSONDecodeError) else ""
        raise UnreadableInput(f"This is not {'a number' if each.kind == NUMBER else 'JSON'}{where}.") from None
    except ValueError:
        raise UnreadableInput("This is not a whole number.") from None
    except (KeyError, StopIteration):
        raise UnreadableInput("This is none of the choices.") from None
    return text


def format_value(value: Any) -> str:
    """A value as it stands in its field."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def split_document(fields: tuple[SchemaField, ...], document: Any) -> dict[str, str]:
    """The texts of the fields for a document; what the fields have no room for is told by `members_without_field`."""
    texts: dict[str, str] = {}
    given = document if isinstance(document, Mapping) else {}
    for each in fields:
        if each.kind == GROUP:
            texts |= split_document(each.fields, given.get(each.key))
        elif each.key in given and given[each.key] is not None:
            value = given[each.key]
            texts[each.name] = (
                json.dumps(value, indent=2, ensure_ascii=False) if each.kind == JSON else format_value(value)
            )
    return texts


def members_without_field(fields: tuple[SchemaField, ...], document: Mapping[str, Any]) -> list[str]:
    """The members of a document that the form has no field for."""
    return [str(key) for key in document if key not in {each.key for each in fields}]
