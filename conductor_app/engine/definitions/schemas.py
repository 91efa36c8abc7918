"""Commands on schemas, which have a name and a version, and the resolution of references to them in definitions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max

from ... import clock
from ...core.document.checks.schema import read_schema
from ...core.document.lint import UNUSABLE_SCHEMA, WARNING, LintFinding
from ...core.errors import Conflict, NotFound, ValidationError, ValidationFailed
from ...core.step_tree import walk
from ...models import SchemaDefinition
from ...store.rows import strip_nul
from . import json_schema
from .definition_audit import record_definition_change

Document = dict[str, Any]
PARTS = ("inputSchema", "outputSchema")


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


def schema_findings(definition: Any) -> list[LintFinding]:
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
        return json_schema.schema_error(data)
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
    """Delete one version of a schema, or all. Resolved definitions keep their copies.

    Raises:
        NotFound: when there is no such schema.
    """
    with transaction.atomic():
        rows = SchemaDefinition.objects.filter(name=name)
        chosen = rows if version is None else rows.filter(version=version)
        versions = list(chosen.values_list("version", flat=True))
        if not versions:
            raise NotFound(f"No such schema: {_parse_reference(name, version)}")
        chosen.delete()
        for each in versions:
            record_definition_change("schema", f"{name}:{each}", "delete", by, reason, clock.now())


def find_schema(name: str, version: int | None = None) -> SchemaDefinition:
    """Return a schema by name and version, without a version the newest.

    Raises:
        NotFound: when there is no such schema.
    """
    rows = SchemaDefinition.objects.filter(name=name)
    row = (rows.order_by("-version") if version is None else rows.filter(version=version)).first()
    if row is None:
        raise NotFound(f"No such schema: {_parse_reference(name, version)}")
    return row


def _parse_reference(name: str, version: int | None) -> str:
    return name if version is None else f"{name}, version {version}"


def fill_in_schemas(definition: Document) -> Document:
    """Return a workflow or task definition with the schemas filled in that it refers to."""
    named = {part: definition[part] for part in PARTS if _is_named(definition.get(part))}
    return definition | {part: _fill_in_schema(schema) for part, schema in named.items()} if named else definition


def _is_named(schema: Any) -> bool:
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


def fill_in_schemas_of_all(definitions: Iterable[tuple[str, Document]]) -> dict[str, Document]:
    """Fill the schemas into several definitions, and return them by name."""
    return {name: fill_in_schemas(document) for name, document in definitions}
