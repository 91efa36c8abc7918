"""Tests of the workflows of a folder: simulated with mock results by the same core, and compared with expectations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from conductor_app.api.conductor.definitions.simulation_serializers import parse_test_request
from conductor_app.api.conductor.schedules.schedule_serializers import parse_schedule
from conductor_app.core.errors import Invalid, RequestRefused
from conductor_app.core.simulation.mock_outcomes import ENOUGH
from conductor_app.engine.definitions.definition_kinds import describe_difference
from conductor_app.engine.definitions.simulation import simulate_workflow
from conductor_app.engine.definitions.simulation_cases import case_outcome
from conductor_app.engine.definitions.source_apply import apply_plan
from conductor_app.engine.definitions.source_kinds import source_kinds
from conductor_app.engine.definitions.source_plan import InvalidDocument, SourceFolder, plan_source
from conductor_app.insight.differences import find_differences

from .import_plan import describe_refusal

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
