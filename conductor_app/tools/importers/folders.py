"""Folders of definitions: their JSON Schema for completion in editors, and the tests of their workflows.

Tests are simulated with mock results by the same core, and compared with expectations.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from ...core.definition import STEP_STRUCTURES
from ...core.document.fields import SCHEMA, STEP_FIELDS, TASK_DEFINITION, WORKFLOW_DEFINITION, FieldTable, ObjectOf
from ...core.errors import Invalid, RequestRefused
from ...core.human_tasks import FORM_TEMPLATE
from ...core.simulation import ENOUGH
from ...core.validation.checks import ALERT, EVENT_HANDLER, QUEUE_LIMIT, ROLE
from ...definitions.api.serializers import parse_test_request
from ...definitions.simulation.commands import case_outcome, simulate_workflow
from ...definitions.sources.commands import apply_plan
from ...definitions.sources.kinds import describe_difference
from ...definitions.sources.operator_kinds import source_kinds
from ...definitions.sources.plan import InvalidDocument, SourceFolder, plan_source
from ...schedules.serializers import SCHEDULE, parse_schedule
from ...site.openapi.schema import STEP_REFERENCE, schema_of
from ...utils.differences import find_differences
from .plan import describe_refusal

SERVER_FIELDS = frozenset(("createTime", "updateTime", "createdBy", "updatedBy"))
KINDS: dict[str, tuple[FieldTable, tuple[str, ...]]] = {
    "workflow": (WORKFLOW_DEFINITION, ("name", "tasks")),
    "task": (TASK_DEFINITION, ("name",)),
    "schedule": (SCHEDULE, ("name", "startWorkflowRequest")),
    "event-handler": (EVENT_HANDLER, ("name", "event", "actions")),
    "form-template": (FORM_TEMPLATE, ("name",)),
    "schema": (SCHEMA, ("name",)),
    # Its other fields are also those of a task definition.
    "queue-limit": (QUEUE_LIMIT, ("kind", "name")),
    "alert": (ALERT, ("name", "conditions")),
    "role": (ROLE, ("name", "permissions")),
}
"""The fields of each kind, and those that a document must have."""


def folder_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file: one definition or a list of definitions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Definitions of Conductor",
        "anyOf": [
            {"$ref": "#/$defs/definition"},
            {"type": "array", "items": {"$ref": "#/$defs/definition"}},
        ],
        "$defs": {
            "definition": _definition(),
            **{name: _object(table, required) for name, (table, required) in KINDS.items()},
        },
        "components": {
            "schemas": {
                STEP_REFERENCE["$ref"].rpartition("/")[2]: _step(),
                # The definition of a sub-workflow that is written in place.
                "WorkflowDef": {"$ref": "#/$defs/workflow"},
            }
        },
    }


def _definition() -> dict[str, Any]:
    """Return the schema of a definition of any kind: that of its `kind`, or of the fields that it must have."""
    stated = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{name}"},
        }
        for name in KINDS
    ]
    any_kind = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in KINDS]}
    return {
        "type": "object",
        "properties": {"kind": {"enum": [*KINDS]}},
        "allOf": [*stated, {"if": {"not": {"required": ["kind"]}}, "then": any_kind}],
    }


def _step() -> dict[str, Any]:
    step = _object(STEP_FIELDS, ("name", "taskReferenceName"))
    # A worker's task can have any type.
    step["properties"]["type"] = {"anyOf": [{"enum": sorted(STEP_STRUCTURES)}, {"type": "string"}]}
    return step


def _object(table: FieldTable, required: Iterable[str]) -> dict[str, Any]:
    schema = schema_of(ObjectOf(table))
    schema["properties"] = {name: found for name, found in schema["properties"].items() if name not in SERVER_FIELDS}
    return {**schema, "required": [*required]}


Document = dict[str, Any]
FIELDS = frozenset(("name", "workflow", "version", "input", "mocks", "subWorkflows", "expected"))
EXPECTED = ("status", "path", "output")
MAX_DIFFERENCES = 20
LABEL = "tests"
SIMULATED = ("schemas", "tasks", "form-templates", "workflows")
"""The kinds that a simulation reads."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test. `differences`: from its expectations. `error`: why it could not be executed."""

    __test__ = False

    name: str
    workflow: str
    seconds: float
    differences: Sequence[str] = ()
    error: str = ""

    @property
    def has_passed(self) -> bool:
        return not self.differences and not self.error


def save_folder(documents: Sequence[Document]) -> list[InvalidDocument]:
    """Save the definitions of a folder in the database of this process, and return those that are invalid."""
    plan = plan_source(SourceFolder(LABEL, documents), source_kinds(parse_schedule), LABEL)
    if plan.invalid:
        return plan.invalid
    plan.items = [item for item in plan.items if item.kind.plural in SIMULATED]
    return [InvalidDocument(each.item.position, each.error, each.item.name) for each in apply_plan(plan) if each.error]


def execute_test(test: Document) -> TestResult:
    """Simulate a workflow with the mock results of a test, and compare its execution with the expectations."""
    began = monotonic()
    name, workflow = str(test.get("name") or "without a name"), str(test.get("workflow") or "")
    differences: list[str] = []
    error = ""
    try:
        _check_test(test)
        request, script = parse_test_request(_start_document(test, "workflow"))
        actual = case_outcome(simulate_workflow(request, script)[0])
        differences = list(_compare(test["expected"], actual))
    except RequestRefused as refused:
        error = describe_refusal(refused)
    return TestResult(name, workflow, monotonic() - began, differences, error)


def _check_test(test: Document) -> None:
    if unknown := sorted(test.keys() - FIELDS):
        raise Invalid(f"The field {unknown[0]!r:.60} is unknown. A test has the fields {', '.join(sorted(FIELDS))}.")
    if not isinstance(test.get("workflow"), str):
        raise Invalid("A test must name its workflow.")
    expected = test.get("expected")
    if not isinstance(expected, Mapping) or not expected or expected.keys() - set(EXPECTED):
        raise Invalid(f"`expected` must have one or several of the fields {', '.join(EXPECTED)}.")


def _start_document(test: Mapping[str, Any], name_field: str) -> Document:
    """Return a test, or its part for a sub-workflow, as a test request of the API."""
    mocks, children = test.get("mocks") or {}, test.get("subWorkflows") or {}
    if not isinstance(mocks, Mapping) or not isinstance(children, Mapping):
        raise Invalid("`mocks` and `subWorkflows` must be objects with the references of tasks as keys.")
    if any(not isinstance(child, Mapping) for child in children.values()):
        raise Invalid("Each of `subWorkflows` must be an object with `mocks`.")
    found = {
        "name": test.get(name_field),
        "version": test.get("version"),
        "input": test.get("input") or {},
        # One result is that of each attempt in each iteration; a list has those of the attempts in order.
        "taskRefToMockOutput": {
            ref: mock if isinstance(mock, list) else [mock] * ENOUGH for ref, mock in mocks.items()
        },
        "subWorkflowTestRequest": {ref: _start_document(child, "name") for ref, child in children.items()},
    }
    return {name: value for name, value in found.items() if value is not None}


def _compare(expected: Mapping[str, Any], actual: Document) -> Iterator[str]:
    if "status" in expected and expected["status"] != actual["status"]:
        yield f"status: expected {expected['status']}, got {actual['status']}"
    if "path" in expected and expected["path"] != actual["path"]:
        yield f"path: expected {_join(expected['path'])}, got {_join(actual['path'])}"
    if "output" in expected:
        found = find_differences(expected["output"], actual["output"])
        for each in found[:MAX_DIFFERENCES]:
            yield f"output, expected to actual: {describe_difference(each.path, each.before, each.after)}"


def _join(path: Any) -> str:
    return " → ".join(map(str, path)) if isinstance(path, list) and path else str(path)
