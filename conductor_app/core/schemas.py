"""JSON schemas: checks of payloads, forms, and example values.

A form has one field for each scalar value, one for a value of any type, and a JSON text field for everything else.
Submitted fields become a document again. An empty field is omitted from it, so that defaults and requirements of the
schema apply. An example value is one that the schema names, otherwise the simplest value of its type.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .data_requests import SchemaCheck
from .decision_context import DecisionContext
from .definition import Schema
from .primitives import JsonValue

MAX_LENGTH = 4_000
"""Maximum number of characters of a sentence about all violations."""


def schema_question(schema: Schema, value: JsonValue) -> SchemaCheck:
    return SchemaCheck(schema.text, json.dumps(value, default=str))


def schema_violation(schema: Schema | None, value: JsonValue, what: str, ctx: DecisionContext) -> str:
    """Return why the value violates its schema, or "" if it is valid.

    `what`: the prefix of the paths in the sentence.
    """
    if schema is None:
        return ""
    if not schema.text:
        return f"{what} cannot be checked: schema {schema.name} does not exist."
    found = ctx.require(schema_question(schema, value))
    return violation_sentence(found, schema, what) if found else ""


def violation_sentence(found: Iterable[tuple[str, str]], schema: Schema, what: str) -> str:
    validation_errors = "; ".join(f"{what}{place}: {message}" for place, message in found)
    return f"{what} does not match the schema {schema.name or 'of its definition'}: {validation_errors}"[:MAX_LENGTH]


MAX_VISITS = 10_000
"""The maximum number of subschemas that a check visits, with each reference counted like a copy of its target."""
OTHER_REFERENCES = ("$dynamicRef", "$recursiveRef")
REPEATED = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords for which the subschemas beside them are checked a second time."""


class _Unbounded(Exception):
    """The schema refers to itself, in a way that is not followed here, or too often."""


def is_checked_quickly(schema: JsonValue) -> bool:
    """Return True if the time of a check is bounded by the sizes of the schema and the value.

    References can make it exponential: in the number of references, or in the depth of the value if they are recursive.
    """
    try:
        _Visits(schema).of(schema)
    except (_Unbounded, RecursionError):
        return False
    return True


class _Visits:
    def __init__(self, root: JsonValue) -> None:
        self._root = root
        self._targets: dict[str, int | None] = {}

    def of(self, schema: JsonValue) -> int:
        """Return the number of visits of a schema, or of a part of one."""
        if isinstance(schema, list):
            return _check_limit(sum(map(self.of, schema)))
        if not isinstance(schema, Mapping):
            return 0
        if any(name in schema for name in OTHER_REFERENCES) or ("$id" in schema and schema is not self._root):
            raise _Unbounded
        count = 1 + sum(map(self.of, schema.values()))
        if isinstance(reference := schema.get("$ref"), str):
            count += self._of_target(reference)
        return _check_limit(count * 2 ** sum(name in schema for name in REPEATED))

    def _of_target(self, reference: str) -> int:
        if reference not in self._targets:
            self._targets[reference] = None
            self._targets[reference] = self.of(self._find(reference))
        count = self._targets[reference]
        if count is None:
            raise _Unbounded
        return count

    def _find(self, reference: str) -> Any:
        """Return the target of a reference. An anchor or another document is not followed."""
        found = self._root
        if not reference.startswith("#/"):
            raise _Unbounded
        for part in reference.removeprefix("#/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                raise _Unbounded
            found = found[key]
        return found


def _check_limit(count: int) -> int:
    if count > MAX_VISITS:
        raise _Unbounded
    return count


TEXT, NUMBER, WHOLE, YES_NO, CHOICE, DATE, MOMENT, LONG, TYPED, JSON, GROUP = (
    "text", "number", "whole", "yes_no", "choice", "date", "moment", "long", "typed", "json", "group",
)  # fmt: skip
ANNOTATIONS = {"title", "description", "default", "examples"}
"""Keywords that permit every value."""
MAX_DEPTH = 3
MAX_FIELDS = 80
LONG_FROM = 200
KINDS_BY_FORMAT = {"date": DATE, "date-time": MOMENT}
INPUT_TYPES = {TEXT: "text", NUMBER: "number", WHOLE: "number", DATE: "date", MOMENT: "text"}


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field of a form. `name`: its path in the document, such as `input.address.city`."""

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
    """The text of a field is not a value of its type. `place`: line and column of the error in JSON."""

    place: tuple[int, int] = (1, 1)


def build_form(schema: Any, name: str = "input", depth: int = 0) -> tuple[SchemaField, ...]:
    """Return the fields for the schema of an object; none if the schema lists no properties."""
    inner = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(inner, Mapping) or not inner or len(inner) > MAX_FIELDS:
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
            return (LONG if is_long else KINDS_BY_FORMAT.get(str(part.get("format")), TEXT)), ()
        case "number":
            return NUMBER, ()
        case "integer":
            return WHOLE, ()
        case "boolean":
            return YES_NO, ()
        case "object" if depth < MAX_DEPTH and (fields := build_form(part, name, depth + 1)):
            return GROUP, fields
    return (JSON if set(part) - ANNOTATIONS else TYPED), ()


def _input_limits(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the limits that a browser can check, as HTML attributes."""
    for keyword, attribute in (("minimum", "min"), ("maximum", "max"), ("maxLength", "maxlength")):
        if isinstance(part.get(keyword), int | float) and not isinstance(part.get(keyword), bool):
            yield attribute, part[keyword]
    if isinstance(part.get("pattern"), str):
        yield "data-pattern", part["pattern"]


def parse_form(fields: tuple[SchemaField, ...], texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the document of a submitted form, and error messages by field name."""
    document: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for each in fields:
        if each.kind == GROUP:
            inner, inner_errors = parse_form(each.fields, texts)
            errors |= inner_errors
            if inner:
                document[each.key] = inner
            continue
        text = texts.get(each.name, "")
        if not text.strip():
            continue
        try:
            document[each.key] = _parse_field_value(each, text)
        except UnreadableInput as error:
            errors[each.name] = str(error)
    return document, errors


def _parse_field_value(each: SchemaField, text: str) -> Any:
    try:
        match each.kind:
            case "number":
                value = json.loads(text)
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise UnreadableInput("Enter a number.")
                return value
            case "whole":
                return int(text)
            case "yes_no":
                return {"true": True, "false": False}[text]
            case "choice":
                return next(choice for choice in each.choices if format_value(choice) == text)
            case "typed":
                return parse_typed(text)
            case "json":
                return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        message = "Enter a number." if each.kind == NUMBER else f"This is not valid JSON{where}."
        raise UnreadableInput(message) from None
    except ValueError:
        raise UnreadableInput("Enter a whole number.") from None
    except (KeyError, StopIteration):
        raise UnreadableInput("Select one of the choices.") from None
    return text


def format_value(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def split_document(fields: tuple[SchemaField, ...], document: JsonValue) -> dict[str, str]:
    """Return the texts of the fields for a document. `fits_form` returns whether they cover all of it."""
    texts: dict[str, str] = {}
    members = document if isinstance(document, Mapping) else {}
    for each in fields:
        if each.kind == GROUP:
            texts |= split_document(each.fields, members.get(each.key))
        elif each.key in members and members[each.key] is not None:
            value = members[each.key]
            texts[each.name] = _format_field_value(each, value)
    return texts


def _format_field_value(each: SchemaField, value: JsonValue) -> str:
    if each.kind == TYPED:
        return format_typed(value)
    return json.dumps(value, indent=2, ensure_ascii=False) if each.kind == JSON else format_value(value)


def fits_form(fields: tuple[SchemaField, ...], document: JsonValue) -> bool:
    """Return True if a form can show every value of a document. Empty values may be missing from it."""
    try:
        shown, errors = parse_form(fields, split_document(fields, document))
        return not errors and _without_empty(shown) == _without_empty(document)
    except RecursionError:
        return False


def _without_empty(value: JsonValue) -> JsonValue:
    if not isinstance(value, Mapping):
        return value
    inner = {str(name): _without_empty(each) for name, each in value.items()}
    return {name: each for name, each in inner.items() if each not in (None, "", {})}


LITERALS = frozenset(("true", "false", "null"))
BEGINS_JSON = frozenset('{["-0123456789')


def parse_typed(text: str, load: Callable[..., Any] = json.loads) -> Any:
    """Return the value of a text: numbers, true, false, null, objects, lists and quoted texts are JSON.

    Raises:
        UnreadableInput: when the text begins like an object, a list or a quoted text, and is not valid JSON.
    """
    written = text.strip()
    if written in LITERALS:
        return json.loads(written)
    if written[:1] not in BEGINS_JSON or not written:
        return text
    try:
        return load(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        if written[0] not in '{["':
            return text
        place = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        where = "at line {}, column {}".format(*place)
        unreadable = UnreadableInput(f"Not valid JSON {where}. To enter it as text, put it in quotes.")
        unreadable.place = place
        raise unreadable from None


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def format_typed(value: JsonValue) -> str:
    """Return the text of a field for a value. A text that would be parsed as another value is put in quotes."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) and value else None)
    try:
        is_plain = parse_typed(value) == value
    except UnreadableInput:
        is_plain = False
    return value if is_plain else json.dumps(value, ensure_ascii=False)


MAX_SAMPLE_DEPTH = 8
SAMPLES_BY_TYPE = {
    "string": "text",
    "number": 1.0,
    "integer": 1,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
SAMPLES_BY_FORMAT = {"date": "2027-01-31", "date-time": "2027-01-31T12:00:00Z", "email": "user@example.com"}


def sample_from_schema(schema: Any, depth: int = 0) -> Any:
    """Return an example value; None for a part without a type."""
    if not isinstance(schema, Mapping) or depth > MAX_SAMPLE_DEPTH:
        return None
    for keyword in ("default", "const"):
        if keyword in schema:
            return schema[keyword]
    for keyword in ("examples", "enum"):
        if isinstance(schema.get(keyword), list) and schema[keyword]:
            return schema[keyword][0]
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if isinstance(schema.get("properties"), Mapping):
        return {str(name): sample_from_schema(part, depth + 1) for name, part in schema["properties"].items()}
    if kind == "array" and "items" in schema:
        return [sample_from_schema(schema["items"], depth + 1)]
    if kind == "string" and schema.get("format") in SAMPLES_BY_FORMAT:
        return SAMPLES_BY_FORMAT[schema["format"]]
    if kind in ("integer", "number") and isinstance(schema.get("minimum"), int | float):
        return schema["minimum"]
    return SAMPLES_BY_TYPE.get(kind) if isinstance(kind, str) else None
