"""Lint of fields that nothing reads: misspelled ones, and those that belong elsewhere."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..definition import STEP_STRUCTURES, StepSpot, structure_of_step, type_of
from ..document.fields import (
    STEPS,
    TASK_DEFINITION,
    WORKFLOW_DEFINITION,
    WORKFLOW_TASK,
    FieldTable,
    ListOf,
    MapOf,
    ObjectOf,
    Reader,
)
from ..step_types.waiting import Wait
from .findings import HINT, UNKNOWN_FIELD, WARNING, LintFinding, closest_name, did_you_mean

OTHER_NAMES = frozenset(("workflowTaskType", "callbackFromWorker", "createdBy", "tags", "overwriteTags"))
"""Fields beside those of the tables: another name of `type`, tags, and some that clients send without an effect."""
OF_TASK_DEFINITIONS = frozenset(spec.name for spec in TASK_DEFINITION)
OTHER_INPUTS = frozenset(
    ("duration", "until", "terminationStatus", "terminationReason", "workflowOutput", "http_request", "kafka_request")
)
MIN_LIMITS = {"concurrentExecLimit": 0, "rateLimitPerFrequency": 0, "rateLimitFrequencyInSeconds": 1}


def lint_unknown_fields(document: Mapping[str, Any], found: list[StepSpot]) -> Iterator[LintFinding]:
    """Yield a finding for each field of a workflow definition and of its steps that has no effect."""
    for name, path in _unknown_fields(document, WORKFLOW_DEFINITION):
        if path == name and name in OF_TASK_DEFINITIONS:
            message = f"`{name}` has no effect here: it is a field of task definitions."
            yield LintFinding(WARNING, UNKNOWN_FIELD, path, message, name)
        else:
            yield _unknown_field_finding(name, path, WORKFLOW_DEFINITION)
    for spot in found:
        table = (*WORKFLOW_TASK, *structure_of_step(spot.step).fields)
        for name, path in _unknown_fields(spot.step, table, spot.path):
            yield _finding_of_step(spot, name, path, table)
        inputs = spot.step.get("inputParameters")
        if type_of(spot.step) == Wait.type and isinstance(inputs, Mapping) and "wait_until" in inputs:
            message = "This server reads `wait_until` as `until`. Other servers ignore it and wait for ever."
            yield LintFinding(
                HINT, UNKNOWN_FIELD, f"{spot.path}.inputParameters.wait_until", message, "wait_until", "until"
            )


def lint_task_definition(document: Mapping[str, Any]) -> Iterator[LintFinding]:
    """Yield the findings on the fields of a task definition."""
    yield from lint_document(document, TASK_DEFINITION)
    for name, least in MIN_LIMITS.items():
        value = document.get(name)
        if type(value) is int and value < least:
            message = f"`{name}` is {value}, which limits nothing. Use {least} or more, or leave it out."
            yield LintFinding(WARNING, UNKNOWN_FIELD, name, message)


def lint_document(
    document: Mapping[str, Any], table: FieldTable, others: Collection[str] = ()
) -> Iterator[LintFinding]:
    """Yield a finding for each field that the table of a document does not have.

    `others`: fields of replies, which clients send back.
    """
    for name, path in _unknown_fields(document, table):
        if path not in others:
            yield _unknown_field_finding(name, path, table)


def _unknown_fields(document: Mapping[str, Any], table: FieldTable, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and path of each field that no table knows, nested objects included. Steps are left out."""
    known = {spec.name: spec.read for spec in table}
    for name, value in document.items():
        place = f"{path}.{name}" if path else str(name)
        if name in known:
            yield from _unknown_inside(value, known[name], place)
        elif isinstance(name, str) and name not in OTHER_NAMES and name[:1] not in ("_", "$") and name[:2] != "x-":
            yield name, place


def _unknown_field_finding(name: str, path: str, table: FieldTable) -> LintFinding:
    """Return the finding on a field that nothing reads."""
    near = closest_name(name, [spec.name for spec in table])
    message = f"Nothing reads the field `{name}`.{did_you_mean(near)}"
    return LintFinding(WARNING if near else HINT, UNKNOWN_FIELD, path, message, name, near)


def _unknown_inside(value: Any, read: Reader, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(read, ObjectOf) and isinstance(value, Mapping):
        yield from _unknown_fields(value, read.table, path)
    elif isinstance(read, ListOf) and read is not STEPS and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown_inside(item, read.item, f"{path}[{index}]")
    elif isinstance(read, MapOf) and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _unknown_inside(item, read.item, f"{path}[{key}]")


def _finding_of_step(spot: StepSpot, name: str, path: str, table: FieldTable) -> LintFinding:
    if path != f"{spot.path}.{name}":
        return _unknown_field_finding(name, path, TASK_DEFINITION if ".taskDefinition." in path else table)
    if name in OF_TASK_DEFINITIONS:
        message = (
            f"`{name}` has no effect in a step: it is a field of task definitions. Write it into the task definition "
            f"`{spot.name}`, or into `taskDefinition` of this step."
        )
        return LintFinding(WARNING, UNKNOWN_FIELD, path, message, name)
    if name in input_names(type_of(spot.step)):
        message = f"`{name}` has no effect here: it is an input. Write it into `inputParameters`."
        return LintFinding(WARNING, UNKNOWN_FIELD, path, message, name)
    return _unknown_field_finding(name, path, table)


def input_names(type: str) -> frozenset[str]:
    """Return the names of inputs that a type of step reads, as far as they are declared."""
    structure = STEP_STRUCTURES.get(type)
    if structure is None:
        return frozenset()
    script = structure.script_field.partition("inputParameters.")[2]
    return OTHER_INPUTS | frozenset((*structure.required_inputs, script or "queryExpression"))
