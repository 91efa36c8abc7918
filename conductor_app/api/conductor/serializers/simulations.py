"""WorkflowTestRequest in (api §3.8): a start, and what its tasks come to."""

from typing import Any

from ....core.language.checks.fields import Field, Of, Table
from ....core.language.checks.values import Choice, ListOf, MapOf, Place, Reader, mapping, seconds
from ....core.simulation import Mock, Script
from ....engine.runs import StartRequest
from .requests import read_request
from .tasks import OUTCOMES
from .workflows import START_REQUEST, start_request

MOCKED = {**OUTCOMES, "TIMED_OUT": "TIMED_OUT"}
"""What a task may be written to come to."""
PATH = "testWorkflow.request"

MOCK: Table = (
    Field("status", Choice(*MOCKED), "COMPLETED"),
    Field("output", mapping, dict),
    Field("executionTime", seconds, 0),
    Field("queueWaitTime", seconds, 0),
)
SPELLED_BY_PYTHON = {
    "_status": "status",
    "_output": "output",
    "_execution_time": "executionTime",
    "_queue_wait_time": "queueWaitTime",
}
"""The Python SDK sends its private names, and for a field that was not given the text of a Python object."""


def a_mock(value: Any, place: Place) -> dict[str, Any]:
    """One TaskMock, in either spelling."""
    given = {SPELLED_BY_PYTHON.get(name, name): each for name, each in mapping(value, place).items()}
    given = {
        name: each
        for name, each in given.items()
        if not (isinstance(each, str) and each.startswith("<property object"))
    }
    return Of(MOCK)(given, place)


def parts(mock: Reader) -> Table:
    """What a test says beside the start."""
    mocks = Field("taskRefToMockOutput", MapOf(ListOf(mock)), dict)
    return (mocks, Field("subWorkflowTestRequest", MapOf(mapping), dict))


PARTS = parts(a_mock)
TEST_REQUEST: Table = (*START_REQUEST, *parts(Of(MOCK)))


def trial(document: dict[str, Any]) -> tuple[StartRequest, Script]:
    """A WorkflowTestRequest; raises ValidationFailed."""
    return start_request(document), script(document, PATH)


def script(document: dict[str, Any], path: str) -> Script:
    """What is written for one workflow, and for those that it starts."""
    read = read_request(document, PARTS, path, _nothing_more)
    mocks = {ref: tuple(map(mock, each)) for ref, each in read["taskRefToMockOutput"].items() if each}
    inner = read["subWorkflowTestRequest"]
    children = {ref: script(each, f"{path}.subWorkflowTestRequest[{ref}]") for ref, each in inner.items() if each}
    return Script(mocks, children)


def mock(read: dict[str, Any]) -> Mock:
    """What one attempt comes to."""
    return Mock(MOCKED[read["status"]], read["output"], max(read["queueWaitTime"], 0), max(read["executionTime"], 0))


def _nothing_more(read: dict[str, Any], place: Place) -> None:
    """The fields are all that is checked."""
