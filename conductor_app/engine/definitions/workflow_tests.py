"""Workflow tests: simulations whose executions are saved, so that clients can read them by id."""

from typing import Any

from ... import clock
from ...core.errors import NotFound
from ...core.simulation import SimulationScript
from ...models import WorkflowTest
from ..runs.run_commands import StartRequest
from .simulation import simulate_workflow

RETENTION_MS = 86_400_000


def test_workflow(request: StartRequest, script: SimulationScript, by: str) -> dict[str, Any]:
    """Simulate a workflow, save its execution and those of its children, and return it as a Workflow document.

    The executions are saved as documents, separate from runs: workers cannot poll their tasks.

    Raises:
        NotFound: when there is no such definition.
        ValidationFailed: when the inline definition or the input violates a check or schema.
        Invalid: when the simulation takes too long, or the engine cannot decide it.
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
    """Return the saved execution of a test as a Workflow document.

    Raises:
        NotFound: when there is no such test.
    """
    test = WorkflowTest.objects.filter(pk=id).first()
    if test is None:
        raise NotFound(f"No such workflow found by id: {id}")
    return test.document


def delete_old_tests(now: int) -> None:
    """Delete the tests that are older than RETENTION_MS."""
    WorkflowTest.objects.filter(created_at__lt=now - RETENTION_MS).delete()
