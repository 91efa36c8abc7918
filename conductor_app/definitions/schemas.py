"""Schemas of payloads: commands on them, references to them in definitions, and the check of values.

Remote references are refused, and error messages contain no values.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs
from django.db import IntegrityError
from django.db.models import Max

from ..access.authentication import current_user_id
from ..core.data_requests import SchemaCheck
from ..core.definition import walk
from ..core.document.fields import read_schema
from ..core.errors import Busy, Conflict, NotFound, ValidationError, ValidationFailed
from ..core.primitives import JsonValue
from ..core.schemas import is_checked_quickly
from ..core.validation.findings import UNUSABLE_SCHEMA, WARNING, LintFinding
from ..db.database import transaction
from ..db.fields import strip_nul
from ..scripts import pool
from ..utils import clock
from .models import SchemaDefinition
from .store import record_definition_change

MAX_ERRORS = 50
MAX_LENGTH = 300
Document = dict[str, Any]
PARTS = ("inputSchema", "outputSchema")


def check_against_schema(request: SchemaCheck) -> tuple[tuple[str, str], ...]:
    """Return the violations of a schema as pairs of path and message.

    Raises:
        Busy: when a helper process is needed and none is available.
    """
    try:
        validator = _quick_validator(request.schema)
        if validator is None:
            return _check_in_helper(request)
        errors = list(islice(validator.iter_errors(json.loads(request.value)), MAX_ERRORS))
    except ValueError as fault:
        return (("", f"the schema cannot be used: {_first_error_line(fault)}"),)
    return tuple((_format_path(error.instance_path), error.message[:MAX_LENGTH]) for error in errors)


def schema_error(schema: dict[str, Any]) -> str:
    """Return why a JSON schema cannot be used, or an empty string."""
    try:
        _build_validator(schema)
    except ValueError as fault:
        return _first_error_line(fault)
    return ""


@lru_cache(maxsize=500)
def _quick_validator(schema: str) -> Any:
    """Return the validator of a schema, or None if a check could keep this process busy without end."""
    document = json.loads(schema)
    return _build_validator(document) if is_checked_quickly(document) else None


def _check_in_helper(request: SchemaCheck) -> tuple[tuple[str, str], ...]:
    """Check a value in a helper process, which is ended at the time limit of scripts."""
    value, limit = json.loads(request.value), pool.EVALUATION_SECONDS
    try:
        found = pool.evaluate("json-schema", request.schema, value, limit, key=request.schema, owner=current_user_id())
    except pool.ScriptsUnavailable as busy:
        raise Busy(str(busy)) from busy
    if found.timed_out:
        return (("", f"the schema cannot be used: the check took longer than {limit:g} s"),)
    if found.error:
        return (("", f"the schema cannot be used: {found.error[:MAX_LENGTH]}"),)
    return tuple((_format_path(path), message) for path, message in found.value)


def _build_validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for(
        schema, retriever=_refuse_remote_reference, validate_formats=True, mask="the value"
    )


def _refuse_remote_reference(address: str) -> Any:
    raise ValueError("remote references are not supported; a schema can refer only to itself")


def _format_path(path: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[:MAX_LENGTH]


def _first_error_line(fault: ValueError) -> str:
    return str(fault).partition("\n")[0][:MAX_LENGTH]


def save_schemas(documents: Sequence[Document], by: str, *, new_version: bool = False, reason: str = "") -> None:
    """Save schemas, or none if one is refused.

    `new_version`: save each as the version after the newest one, instead of replacing the version that it states.

    Raises:
        ValidationFailed: when one of the documents is invalid.
        Conflict: when a concurrent request saves the same version.
    """
    read = [_check_schema(document, number) for number, document in enumerate(documents)]
    if validation_errors := [each for _, found in read for each in found]:
        raise ValidationFailed(validation_errors)
    with transaction.atomic():
        for document, _ in read:
            _save_schema(document, by, new_version, reason)


def _check_schema(document: Document, number: int) -> tuple[Document, list[ValidationError]]:
    read, validation_errors = read_schema(document)
    return read, [ValidationError(f"[{number}].{each.path}", each.message, each.value) for each in validation_errors]


def schema_findings(definition: JsonValue) -> list[LintFinding]:
    """Return a warning for each schema in a workflow or task definition that cannot be used as a JSON schema.

    The original accepts such schemas, so they are saved; every payload that they apply to is refused.
    """
    if not isinstance(definition, dict):
        return []
    found = _unusable_schemas(definition, "")
    for spot in walk(definition.get("tasks")):
        own = spot.step.get("taskDefinition")
        if isinstance(own, dict):
            found += _unusable_schemas(own, f"{spot.path}.taskDefinition.")
    return found


def _unusable_schemas(definition: Document, path: str) -> list[LintFinding]:
    given = ((part, definition.get(part)) for part in PARTS)
    faults = ((part, _schema_error(schema)) for part, schema in given if isinstance(schema, dict))
    return [
        LintFinding(
            WARNING,
            UNUSABLE_SCHEMA,
            f"{path}{part}.data",
            f"Not a usable JSON schema: {fault}. If it is enforced, every payload is refused.",
        )
        for part, fault in faults
        if fault
    ]


def _schema_error(schema: Mapping[str, Any]) -> str:
    """Return why a JSON schema cannot be used. Schemas of other types are not checked."""
    data = schema.get("data")
    if isinstance(data, dict) and schema.get("type") in (None, "JSON"):
        return schema_error(data)
    return ""


def _save_schema(document: Document, by: str, new_version: bool, reason: str) -> None:
    now, name, version = clock.now(), document["name"], document["version"]
    rows = SchemaDefinition.objects.filter(name=name)
    if new_version:
        version = (rows.aggregate(newest=Max("version"))["newest"] or 0) + 1
    found = rows.select_for_update().filter(version=version).first()
    row = found or SchemaDefinition(name=name, version=version, created_at=now, created_by=by[:255])
    row.document = {**document, "version": version}
    if found:
        row.updated_at, row.updated_by = now, by[:255]
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        # A concurrent request created the same row first.
        raise Conflict(f"The schema {name}, version {version}, already exists.") from None
    record_definition_change("schema", f"{name}:{version}", "overwrite" if found else "create", by, reason, now)


def delete_schema(name: str, version: int | None, by: str, reason: str = "") -> None:
    """Delete one version of a schema, or all. Resolved definitions keep their copies."""
    with transaction.atomic():
        rows = SchemaDefinition.objects.filter(name=name)
        chosen = rows if version is None else rows.filter(version=version)
        versions = list(chosen.values_list("version", flat=True))
        if not versions:
            raise NotFound(f"No such schema: {_describe(name, version)}")
        chosen.delete()
        for each in versions:
            record_definition_change("schema", f"{name}:{each}", "delete", by, reason, clock.now())


def find_schema(name: str, version: int | None = None) -> SchemaDefinition:
    """Return a schema by name and version, without a version the newest."""
    rows = SchemaDefinition.objects.filter(name=name)
    row = (rows.order_by("-version") if version is None else rows.filter(version=version)).first()
    if row is None:
        raise NotFound(f"No such schema: {_describe(name, version)}")
    return row


def _describe(name: str, version: int | None) -> str:
    return name if version is None else f"{name}, version {version}"


def fill_in_schemas(definition: Document) -> Document:
    """Return a workflow or task definition with the schemas filled in that it refers to."""
    named = {part: definition[part] for part in PARTS if _is_named(definition.get(part))}
    return definition | {part: _fill_in_schema(schema) for part, schema in named.items()} if named else definition


def input_schema(definition: Mapping[str, Any]) -> JsonValue:
    """Return the schema of the form for a workflow's input, with the values of `inputTemplate` as defaults.

    It is the input schema, if this lists members, otherwise one of the declared inputs, with values of any type.
    """
    schema = fill_in_schemas(dict(definition)).get("inputSchema")
    data = schema.get("data") if isinstance(schema, Mapping) else None
    members = data.get("properties") if isinstance(data, Mapping) else None
    if not isinstance(members, Mapping) or not members:
        names = definition.get("inputParameters")
        declared = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        if not declared:
            return data
        data, members = {}, {name: {"default": ""} for name in declared}
    template = definition.get("inputTemplate")
    defaults = template if isinstance(template, Mapping) else {}
    properties = {
        name: {**part, "default": defaults[name]} if name in defaults and isinstance(part, Mapping) else part
        for name, part in members.items()
    }
    return {**(data if isinstance(data, Mapping) else {}), "properties": properties}


def _is_named(schema: JsonValue) -> bool:
    return isinstance(schema, dict) and bool(schema.get("name")) and not schema.get("data")


def _fill_in_schema(schema: Document) -> Document:
    try:
        version = schema.get("version")
        return {
            **schema,
            **find_schema(strip_nul(str(schema["name"])), None if version is None else int(version)).document,
        }
    except (NotFound, TypeError, ValueError, OverflowError):
        # A missing schema is reported when a payload is checked.
        return schema
