"""Parsing of a WorkflowTestRequest (api §3.8): a start request and the mock results of tasks."""

from typing import Any

from ....core.document.checks.document_fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import ChoiceOf, DocumentPosition, ListOf, MapOf, Reader, read_mapping, seconds
from ....core.simulation import SimulationScript, TaskMock
from ....engine.runs.run_commands import StartRequest
from ..request_fields import read_request
from ..runs.workflow_serializers import START_REQUEST, parse_start_request
from ..tasks.task_serializers import OUTCOME_BY_STATUS

MOCK_OUTCOME_BY_STATUS = {**OUTCOME_BY_STATUS, "TIMED_OUT": "TIMED_OUT"}
"""The outcomes of mock results, by status."""
TEST_PATH = "testWorkflow.request"

MOCK: FieldTable = (
    FieldSpec("status", ChoiceOf(*MOCK_OUTCOME_BY_STATUS), "COMPLETED"),
    FieldSpec("output", read_mapping, dict),
    FieldSpec("executionTime", seconds, 0),
    FieldSpec("queueWaitTime", seconds, 0),
)
PYTHON_SDK_NAMES = {
    "_status": "status",
    "_output": "output",
    "_execution_time": "executionTime",
    "_queue_wait_time": "queueWaitTime",
}
"""The Python SDK sends its private names, and for a field that was not given the text of a Python object."""


def read_mock(value: Any, position: DocumentPosition) -> dict[str, Any]:
    """Return one TaskMock. Both spellings of its fields are accepted."""
    renamed = {PYTHON_SDK_NAMES.get(name, name): each for name, each in read_mapping(value, position).items()}
    renamed = {
        name: each
        for name, each in renamed.items()
        if not (isinstance(each, str) and each.startswith("<property object"))
    }
    return ObjectOf(MOCK)(renamed, position)


def script_fields(mock: Reader) -> FieldTable:
    """Return the fields of a test request beyond those of a start request."""
    mocks = FieldSpec("taskRefToMockOutput", MapOf(ListOf(mock)), dict)
    return (mocks, FieldSpec("subWorkflowTestRequest", MapOf(read_mapping), dict))


SCRIPT_FIELDS = script_fields(read_mock)
TEST_REQUEST: FieldTable = (*START_REQUEST, *script_fields(ObjectOf(MOCK)))


def parse_test_request(document: dict[str, Any]) -> tuple[StartRequest, SimulationScript]:
    """Return the start request and the mock results of a WorkflowTestRequest.

    Raises:
        ValidationFailed: when the document is invalid.
    """
    return parse_start_request(document), parse_script(document, TEST_PATH)


def parse_script(document: dict[str, Any], path: str) -> SimulationScript:
    """Return the mock results for one workflow and for its sub-workflows."""
    fields = read_request(document, SCRIPT_FIELDS, path, _no_check)
    mocks = {ref: tuple(map(parse_mock, each)) for ref, each in fields["taskRefToMockOutput"].items() if each}
    inner = fields["subWorkflowTestRequest"]
    children = {ref: parse_script(each, f"{path}.subWorkflowTestRequest[{ref}]") for ref, each in inner.items() if each}
    return SimulationScript(mocks, children)


def parse_mock(fields: dict[str, Any]) -> TaskMock:
    """Return the mock result of one attempt."""
    return TaskMock(
        MOCK_OUTCOME_BY_STATUS[fields["status"]],
        fields["output"],
        max(fields["queueWaitTime"], 0),
        max(fields["executionTime"], 0),
    )


def _no_check(fields: dict[str, Any], position: DocumentPosition) -> None:
    """Check nothing beyond the fields."""
