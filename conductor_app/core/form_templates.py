"""Check user form templates: name, version, JSON schema and layout."""

from collections.abc import Iterator, Mapping
from typing import Any

from .document.checks.document_fields import FieldSpec, FieldTable, read_document
from .document.checks.values import DocumentPosition, IntegerOf, read_any, read_mapping, read_text
from .errors import ValidationError

MAX_NAME_LENGTH = 255
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
    elif len(name) > MAX_NAME_LENGTH:
        place.at("name").add_error(f"must have at most {MAX_NAME_LENGTH} characters", name)
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
