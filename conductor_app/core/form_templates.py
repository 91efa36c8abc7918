"""Checks of a user form template: its name, its version, its JSON schema and the layout drawn from it."""

from collections.abc import Iterator, Mapping
from typing import Any

from .errors import Complaint
from .language.checks.fields import Field, Table, read_document
from .language.checks.values import Place, Whole, anything, mapping, text

LONGEST_NAME = 255
MOST_ELEMENTS = 2_000
CONTROL = "Control"
FORM_TEMPLATE: Table = (
    Field("name", text),
    Field("version", Whole(), 0),
    Field("jsonSchema", mapping),
    Field("templateUI", mapping),
    Field("ownerApp", text, ""),
    Field("tags", anything, list),
)
"""What a client may say of a template; who changed it and when is the server's to say."""


def read_form_template(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[Complaint]]:
    """Return the template with every field as its type, and everything that is wrong with it.

    Whether `jsonSchema` is a usable JSON schema is left to the caller, which has the validator.
    """
    place = Place()
    read = read_document(dict(document), FORM_TEMPLATE, place)
    name = read.get("name") or ""
    if not name.strip():
        place.at("name").miss("Template name cannot be null or empty", document.get("name"))
    elif len(name) > LONGEST_NAME:
        place.at("name").complain(f"must have at most {LONGEST_NAME} characters", name)
    if read.get("version", 0) < 0:
        place.at("version").complain("must be greater than or equal to 1", read["version"])
    for part in ("jsonSchema", "templateUI"):
        if read.get(part) is None:
            place.at(part).miss(f"Template {part} cannot be null: a JSON object is needed")
    complaints = list(place.complaints)
    if isinstance(read.get("jsonSchema"), dict) and isinstance(read.get("templateUI"), dict):
        complaints += layout_faults(read["templateUI"], read["jsonSchema"])
    return read, complaints


def layout_faults(layout: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Complaint]:
    """Return what is wrong with a JSON Forms layout; an empty layout draws the schema as it stands."""
    return list(_faults(layout, schema)) if layout else []


def _faults(layout: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Complaint]:
    left: list[tuple[str, Any]] = [("templateUI", layout)]
    for seen in range(MOST_ELEMENTS + 1):
        if not left:
            return
        if seen == MOST_ELEMENTS:
            yield Complaint("templateUI", f"must have at most {MOST_ELEMENTS:,} elements")
            return
        path, element = left.pop()
        if not isinstance(element, Mapping):
            yield Complaint(path, "must be a JSON object")
            continue
        if not isinstance(element.get("type"), str) or not element["type"]:
            yield Complaint(f"{path}.type", "must name the type of the element, such as VerticalLayout or Control")
        yield from _scope_faults(path, element, schema)
        inner = element.get("elements", [])
        if not isinstance(inner, list):
            yield Complaint(f"{path}.elements", "must be a list")
            continue
        left += [(f"{path}.elements[{number}]", each) for number, each in reversed(list(enumerate(inner)))]


def _scope_faults(path: str, element: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Complaint]:
    scope = element.get("scope")
    if scope is None and element.get("type") != CONTROL:
        return
    if not isinstance(scope, str) or not scope.startswith("#"):
        yield Complaint(f"{path}.scope", "must point into jsonSchema, such as #/properties/name", scope)
    elif not _points_at_something(scope, schema):
        yield Complaint(f"{path}.scope", f"points at nothing in jsonSchema: {scope[:200]}", scope)


def _points_at_something(scope: str, schema: Mapping[str, Any]) -> bool:
    found: Any = schema
    for step in scope.lstrip("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and "$ref" in found:
            # Where a reference leads is the validator's to follow.
            return True
        if isinstance(found, Mapping) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return False
    return True
