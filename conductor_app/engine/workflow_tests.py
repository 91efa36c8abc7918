"""Test workflows in memory, and keep the executions so that clients can read them by their ids."""

from typing import Any

from .. import clock
from ..core.errors import NotFound
from ..core.simulation import SimulationScript
from ..models import WorkflowTest
from .runs import StartRequest
from .simulation import simulate_workflow

KEPT_MS = 86_400_000


def test_workflow(request: StartRequest, script: SimulationScript, by: str) -> dict[str, Any]:
    """Compute the execution, keep it with those of its sub-workflows, and return it as a Workflow document.

    Only the documents are kept, apart from runs: no worker can poll their tasks, and nothing follows from them.

    Raises: NotFound and ValidationFailed as a start does; Invalid where the workflow takes too long to compute.
    """
    document, children = simulate_workflow(request, script)
    now = clock.now()
    WorkflowTest.objects.bulk_create(
        [
            WorkflowTest(id=each["workflowId"], name=each["workflowName"], document=each, created_at=now, created_by=by)
            for each in (document, *children.values())
        ]
    )
    return document


def find_test(id: str) -> dict[str, Any]:
    """Return the execution that a test computed, as a Workflow document. Raises NotFound."""
    test = WorkflowTest.objects.filter(pk=id).first()
    if test is None:
        raise NotFound(f"No such workflow found by id: {id}")
    return test.document


def delete_old_tests(now: int) -> None:
    """Delete the tests that are older than a day."""
    WorkflowTest.objects.filter(created_at__lt=now - KEPT_MS).delete()
