"""Resolved definitions: the documents that runs follow, and the schemas that they name.

Audit entry and cache invalidation for a change of a definition.

Validation of payloads by JSON schemas. Remote references are refused, and error messages contain no values.

Commands on schemas, which have a name and a version, and the resolution of references to them in definitions.

Syntax errors of the scripts in workflow definitions and event handlers, found when they are saved.

Resolved definitions: the documents that runs follow, with task definitions, schemas and child versions filled in.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import jsonschema_rs
from django.db import IntegrityError, transaction
from django.db.models import F, Max

from ..access import audit
from ..core.data_requests import SchemaCheck
from ..core.definition import Definition, map_bodies, type_of, walk
from ..core.document.fields import read_schema
from ..core.document.reading import ALLOWED_SECRETS
from ..core.errors import Busy, Conflict, NotFound, RequestRefused, ValidationError, ValidationFailed
from ..core.expressions import ScriptLanguage, evaluator
from ..core.schemas import is_checked_quickly
from ..core.step_types.sub_workflows import SubWorkflow
from ..core.validation.checks import inline_errors, read_handler, workflow_errors
from ..core.validation.findings import ERROR, UNREADABLE, UNUSABLE_SCHEMA, WARNING, LintFinding
from ..core.validation.lint_scripts import WrittenScript, scripts_of
from ..db.fields import strip_nul
from ..scripts import pool
from ..scripts.syntax import ScriptText, SyntaxFault, syntax_faults
from ..utils import clock, process_state
from . import store as definitions
from .models import DefinitionRevision, SchemaDefinition, TaskDefinition, WorkflowDefinition


def record_definition_change(kind: str, id: str, action: str, by: str, reason: str, now: int) -> None:
    """Record who changed a definition, and invalidate the definition caches of all processes."""
    audit.record(kind, id, action, by, reason=reason, at=now)
    bump_definitions_revision()


def bump_definitions_revision() -> None:
    """Invalidate the definition caches of all processes."""
    if not DefinitionRevision.objects.filter(pk=1).update(revision=F("revision") + 1):
        DefinitionRevision.objects.create(pk=1, revision=1)


MAX_ERRORS = 50
MAX_LENGTH = 300


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
        found = pool.evaluate("json-schema", request.schema, value, limit, key=request.schema)
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


NOT_WELL_FORMED = "Expression is not well formatted: "
"""The beginning of Conductor's message."""
UNRESOLVED = ". `${…}` is not replaced in this field: give the value as an input"
JQ = "jq"


def script_errors(document: Any) -> list[ValidationError]:
    """Return an error for each script of a workflow definition that cannot be parsed, and so could never run.

    Faulty jq programs are only findings: Conductor accepts definitions with them, and its jq is another one.
    """
    return [
        ValidationError(
            each.path, f"{message}, taskType: {type_of(each.step)} taskName {each.step.get('name', '')}", each.written
        )
        for each, message in _faulty_scripts(document)
        if each.language != JQ
    ]


def jq_findings(document: Any) -> list[LintFinding]:
    """Return a finding for each jq program of a workflow definition that cannot be compiled."""
    return [
        LintFinding(ERROR, UNREADABLE, each.path, message)
        for each, message in _faulty_scripts(document)
        if each.language == JQ
    ]


def _faulty_scripts(document: Any) -> Iterator[tuple[WrittenScript, str]]:
    scripts = list(scripts_of(document))
    faults = syntax_faults(ScriptText(each.language, each.source) for each in scripts)
    for each in scripts:
        fault = faults.get(ScriptText(each.language, each.source))
        if fault is not None:
            hint = UNRESOLVED if "${" in each.written else ""
            yield each, f"{NOT_WELL_FORMED}{_place_in(each, fault)}{hint}"


def check_handler(document: dict[str, Any]) -> tuple[dict[str, Any], list[ValidationError]]:
    """Return an event handler with converted fields, and all validation errors, that of its condition included."""
    read, validation_errors = read_handler(document)
    condition = read.get("condition")
    language = evaluator(str(read.get("evaluatorType") or "javascript")) or ScriptLanguage("javascript")
    if isinstance(condition, str) and condition.strip() and isinstance(language, ScriptLanguage):
        script = ScriptText(language.language, condition)
        if (fault := syntax_faults([script]).get(script)) is not None:
            message = f"{NOT_WELL_FORMED}{fault}. The condition could never be evaluated"
            validation_errors = [*validation_errors, ValidationError("condition", message, condition)]
    return read, validation_errors


def _place_in(script: WrittenScript, fault: SyntaxFault) -> SyntaxFault:
    """Return the fault with its place in the script as it is written."""
    lines = script.written.count("\n") + 1
    if fault.line > lines:
        return fault._replace(line=lines, column=0)
    return fault._replace(column=max(fault.column - script.offset, 1)) if fault.line == 1 and fault.column else fault


class DefinitionCache:
    """Resolved definitions that this process has loaded, valid for one revision of all definitions."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.plans: dict[tuple[str, int | None], Definition] = {}


_known = process_state.slot(lambda: DefinitionCache(-1))


def current_cache() -> DefinitionCache:
    """Return the cache of this process, emptied if a definition has changed."""
    revision, known = definitions.definitions_revision(), _known.value
    if known.revision != revision:
        _known.value = known = DefinitionCache(revision)
    return known


def resolve_requested(
    name: str, version: int | None, document: dict[str, Any] | None, now: int | None = None
) -> Definition:
    """Return the resolved definition for a name and version, or for an inline document. It is saved if `now` is given.

    Raises:
        NotFound: when there is no definition of this name and version.
        ValidationFailed: when the document is invalid.
    """
    if document is not None:
        if validation_errors := workflow_errors(document):
            raise ValidationFailed(validation_errors)
        return _resolve_document(document, now)
    found = read_unsaved(name, version) if now is None else resolve_by_name(name, version, now)
    if found is None:
        wanted = name if version is None else f"{name}, version {version}"
        raise NotFound(f"No such workflow found by name: {wanted}")
    return found


def resolve_by_name(name: str, version: int | None, now: int) -> Definition | None:
    """Resolve and save the current definition of a name. Without a version, use the newest. Returns None if missing."""
    known = current_cache()
    if (name, version) in known.plans:
        return known.plans[name, version]
    row = find_row(name, version)
    if row is None:
        # Not cached: clients may request any number of names.
        return None
    found = definitions.save_definition(fill_in_references(row.document), now)
    if row.breakpoints:
        found = dataclasses.replace(found, breakpoints=tuple(row.breakpoints))
    # Cached only after the commit, because a rollback also removes the row.
    transaction.on_commit(partial(known.plans.__setitem__, (name, version), found))
    return found


def _resolve_document(
    document: dict[str, Any], now: int | None = None, allowed_secrets: frozenset[str] | None = None
) -> Definition:
    """Resolve a valid definition that is not registered. It is saved if `now` is given."""
    whole = {key: value for key, value in fill_in_references(document).items() if key != ALLOWED_SECRETS}
    if allowed_secrets is not None:
        whole[ALLOWED_SECRETS] = sorted(allowed_secrets)
    return definitions.parse_document(whole) if now is None else definitions.save_definition(whole, now)


def resolve_inline(
    text: str, allowed_secrets: frozenset[str] | None = None, now: int | None = None
) -> Definition | str:
    """Resolve a definition of a step, as JSON text. Returns an error message if the engine cannot execute it.

    The check is the one that the registration of the parent makes.

    `allowed_secrets`: the secrets that its steps may name, or None for those of its author.
    """
    document = json.loads(text)
    if validation_errors := inline_errors(document):
        return "; ".join(each.message for each in validation_errors)
    try:
        return _resolve_document(document, now, allowed_secrets)
    except RequestRefused as refused:
        return refused.message


def read_unsaved(name: str, version: int | None) -> Definition | None:
    """Resolve the current definition of a name without saving it. Returns None if there is none."""
    row = find_row(name, version)
    return None if row is None else definitions.parse_document(fill_in_references(row.document))


def find_row(name: str, version: int | None) -> WorkflowDefinition | None:
    """Return the row of a definition, without a version that of the newest one."""
    rows = WorkflowDefinition.objects.filter(name=name)
    return (rows.filter(version=version) if version is not None else rows.order_by("-version")).first()


def task_document(name: str) -> dict[str, Any] | None:
    """Return the document of a task definition, with its schemas filled in, or None."""
    found = TaskDefinition.objects.filter(name=name).values_list("document", flat=True).first()
    return None if found is None else fill_in_schemas(found)


def fill_in_references(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workflow document with its task definitions, schemas and child versions filled in."""
    rows = TaskDefinition.objects.filter(name__in=names_in(document)).values_list("name", "document")
    found = fill_in_schemas_of_all(rows)
    return {
        **fill_in_schemas(dict(document)),
        "tasks": [_fill_in_step(step, found) for step in document.get("tasks") or ()],
    }


def names_in(document: Any) -> set[str]:
    """Return the values of every `name` in a document, which may be invalid. The names of its steps are among them."""
    names, left = set(), [document]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            names |= {strip_nul(value["name"])} if isinstance(value.get("name"), str) else set()
            left += value.values()
        elif isinstance(value, list):
            left += value
    return names


def _fill_in_step(step: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    complete = map_bodies(step, lambda steps: [_fill_in_step(each, found) for each in steps])
    if not step.get("taskDefinition") and step.get("name") in found:
        complete["taskDefinition"] = found[step["name"]]
    elif isinstance(own := step.get("taskDefinition"), dict):
        complete["taskDefinition"] = fill_in_schemas(own)
    if type_of(step) == SubWorkflow.type and "subWorkflowParam" in step:
        complete["subWorkflowParam"] = _pin_sub_workflow_version(step.get("subWorkflowParam") or {})
    return complete


def _pin_sub_workflow_version(param: Mapping[str, Any]) -> dict[str, Any]:
    """Fix the version of a child workflow when its parent starts (execution §7.1).

    A missing definition is reported when the run reaches the step.
    """
    name = param.get("name")
    if param.get("version") or param.get("workflowDefinition") or not isinstance(name, str) or "${" in name:
        return dict(param)
    row = find_row(name, None)
    return {**param, "version": row.version} if row else dict(param)
