"""WorkflowTestRequest in (api §3.8): a start, and what its tasks come to."""

from typing import Any

from ....core.document.checks.fields import FieldSpec, FieldTable, ObjectOf
from ....core.document.checks.values import ChoiceOf, DocumentPosition, ListOf, MapOf, Reader, read_mapping, seconds
from ....core.simulation import SimulationScript, TaskMock
from ....engine.runs import StartRequest
from .requests import read_request
from .tasks import OUTCOMES
from .workflows import START_REQUEST, start_request

MOCKED = {**OUTCOMES, "TIMED_OUT": "TIMED_OUT"}
"""What a task may be written to come to."""
PATH = "testWorkflow.request"

MOCK: FieldTable = (
    FieldSpec("status", ChoiceOf(*MOCKED), "COMPLETED"),
    FieldSpec("output", read_mapping, dict),
    FieldSpec("executionTime", seconds, 0),
    FieldSpec("queueWaitTime", seconds, 0),
)
SPELLED_BY_PYTHON = {
    "_status": "status",
    "_output": "output",
    "_execution_time": "executionTime",
    "_queue_wait_time": "queueWaitTime",
}
"""The Python SDK sends its private names, and for a field that was not given the text of a Python object."""


def read_mock(value: Any, place: DocumentPosition) -> dict[str, Any]:
    """One TaskMock, in either spelling."""
    given = {SPELLED_BY_PYTHON.get(name, name): each for name, each in read_mapping(value, place).items()}
    given = {
        name: each
        for name, each in given.items()
        if not (isinstance(each, str) and each.startswith("<property object"))
    }
    return ObjectOf(MOCK)(given, place)


def test_parts(mock: Reader) -> FieldTable:
    """What a test says beside the start."""
    mocks = FieldSpec("taskRefToMockOutput", MapOf(ListOf(mock)), dict)
    return (mocks, FieldSpec("subWorkflowTestRequest", MapOf(read_mapping), dict))


PARTS = test_parts(read_mock)
TEST_REQUEST: FieldTable = (*START_REQUEST, *test_parts(ObjectOf(MOCK)))


def parse_test_request(document: dict[str, Any]) -> tuple[StartRequest, SimulationScript]:
    """A WorkflowTestRequest; raises ValidationFailed."""
    return start_request(document), parse_script(document, PATH)


def parse_script(document: dict[str, Any], path: str) -> SimulationScript:
    """What is written for one workflow, and for those that it starts."""
    read = read_request(document, PARTS, path, _nothing_more)
    mocks = {ref: tuple(map(parse_mock, each)) for ref, each in read["taskRefToMockOutput"].items() if each}
    inner = read["subWorkflowTestRequest"]
    children = {ref: parse_script(each, f"{path}.subWorkflowTestRequest[{ref}]") for ref, each in inner.items() if each}
    return SimulationScript(mocks, children)


def parse_mock(read: dict[str, Any]) -> TaskMock:
    """What one attempt comes to."""
    return TaskMock(
        MOCKED[read["status"]], read["output"], max(read["queueWaitTime"], 0), max(read["executionTime"], 0)
    )


def _nothing_more(read: dict[str, Any], place: DocumentPosition) -> None:
    """The fields are all that is checked."""
