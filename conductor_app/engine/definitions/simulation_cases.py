"""Simulation cases of workflows: simulate a document and compare the results with the saved ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ...core.errors import Conflict, RequestRefused
from ...core.simulation.mock_outcomes import SimulatedOutcome, build_script
from ...models import SaveRequirement, SimulationCase
from ...models.fields import dumps, loads
from ..runs.run_commands import StartRequest
from .simulation import simulate_workflow

MAX_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Result of one case. `differs`: what differs from the saved result; empty if nothing does."""

    case: SimulationCase
    differs: str = ""


def simulate_document(
    document: dict[str, Any], input: dict[str, Any], outcomes: dict[str, SimulatedOutcome]
) -> dict[str, Any]:
    """Return the execution that a workflow document would have.

    Raises:
        ValidationFailed, Invalid: as `simulate_workflow`.
    """
    return simulate_with_children(document, input, outcomes)[0]


def simulate_with_children(
    document: dict[str, Any], input: dict[str, Any], outcomes: dict[str, SimulatedOutcome]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the execution that a workflow document would have, and its child executions by id.

    Raises:
        ValidationFailed, Invalid: as `simulate_workflow`.
    """
    request = StartRequest(name=str(document.get("name")), input=input, document=document)
    return simulate_workflow(request, build_script(outcomes))


def require_passing_cases(document: dict[str, Any]) -> None:
    """Refuse to save a document if one of its cases fails and the workflow requires passing cases.

    Raises:
        Conflict: when a case has another result than the saved one.
    """
    name = str(document.get("name") or "")
    if not SaveRequirement.objects.filter(workflow=name, holds=True).exists():
        return
    cases = SimulationCase.objects.filter(workflow=name).order_by("name")[:MAX_AT_ONCE]
    differing = [verdict for verdict in run_cases(document, cases) if verdict.differs]
    if differing:
        first = differing[0]
        raise Conflict(f"{name} cannot be saved while its case '{first.case.name}' fails: {first.differs}.")


def run_cases(document: dict[str, Any], cases: Iterable[SimulationCase]) -> list[CaseResult]:
    """Simulate each case with a document, and return the results."""
    return [_run_case(document, case) for case in cases]


def _run_case(document: dict[str, Any], case: SimulationCase) -> CaseResult:
    outcomes = {ref: SimulatedOutcome(*values) for ref, values in case.outcomes.items()}
    try:
        actual = case_outcome(simulate_document(document, case.input, outcomes))
    except RequestRefused as refused:
        return CaseResult(case, f"the simulation is refused: {refused.message}")
    expected = case.expected
    if actual["status"] != expected.get("status"):
        return CaseResult(case, f"status {actual['status']} instead of {expected.get('status')}")
    if actual["path"] != expected.get("path"):
        paths = _path_taken(actual["path"]), _path_taken(expected.get("path") or [])
        return CaseResult(case, f"path {paths[0]} instead of {paths[1]}")
    return CaseResult(case, "" if actual["output"] == expected.get("output") else "the output differs")


def case_outcome(execution: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of an execution that a case compares: status, path and output."""
    path = list(dict.fromkeys(task["referenceTaskName"] for task in execution["tasks"]))
    return {"status": execution["status"], "path": path, "output": _replace_ids(execution)}


def _replace_ids(execution: dict[str, Any]) -> Any:
    """Return the output with constants in place of run ids, which differ between simulations."""
    ids = dict.fromkeys(task["subWorkflowId"] for task in execution["tasks"] if task.get("subWorkflowId"))
    text = dumps(execution.get("output")) or "null"
    for number, id in enumerate([execution.get("workflowId"), *ids]):
        text = text.replace(id, f"id {number}") if id else text
    return loads(text)


def _path_taken(path: list[str]) -> str:
    refs = path if len(path) <= 8 else [*path[:7], "…"]
    return " → ".join(refs) or "(empty)"
