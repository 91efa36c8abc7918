"""Cases of a workflow run again: whether a document still does what it did when they were kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..core.errors import Conflict, RequestRefused
from ..core.simulation.outcomes import SimulatedOutcome, build_script
from ..models import SaveRequirement, SimulationCase
from ..models.fields import dumps, loads
from .runs import StartRequest
from .simulation import simulate_workflow

MOST_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of one case: the same as before, or what differs."""

    case: SimulationCase
    differs: str = ""


def simulate_document(
    document: dict[str, Any], input: dict[str, Any], outcomes: dict[str, SimulatedOutcome]
) -> dict[str, Any]:
    """The execution that this document would have. Raises what `simulate` does."""
    return simulate_with_children(document, input, outcomes)[0]


def simulate_with_children(
    document: dict[str, Any], input: dict[str, Any], outcomes: dict[str, SimulatedOutcome]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The same, and the executions of the sub-workflows that are played, by their ids."""
    request = StartRequest(name=str(document.get("name")), input=input, document=document)
    return simulate_workflow(request, build_script(outcomes))


def require_passing_cases(document: dict[str, Any]) -> None:
    """Raise Conflict where a kept case differs with this document, and its workflow is to be held back then."""
    name = str(document.get("name") or "")
    if not SaveRequirement.objects.filter(workflow=name, holds=True).exists():
        return
    kept = SimulationCase.objects.filter(workflow=name).order_by("name")[:MOST_AT_ONCE]
    differing = [verdict for verdict in run_cases(document, kept) if verdict.differs]
    if differing:
        first = differing[0]
        raise Conflict(f"{name} is not saved while its case '{first.case.name}' differs: {first.differs}.")


def run_cases(document: dict[str, Any], cases: Iterable[SimulationCase]) -> list[CaseResult]:
    """Every case against this document."""
    return [_run_case(document, case) for case in cases]


def _run_case(document: dict[str, Any], case: SimulationCase) -> CaseResult:
    outcomes = {ref: SimulatedOutcome(*said) for ref, said in case.outcomes.items()}
    try:
        came = case_outcome(simulate_document(document, case.input, outcomes))
    except RequestRefused as refused:
        return CaseResult(case, f"it cannot be tried: {refused.message}")
    before = case.expected
    if came["status"] != before.get("status"):
        return CaseResult(case, f"it ends {came['status']}, it ended {before.get('status')}")
    if came["path"] != before.get("path"):
        return CaseResult(case, f"it goes {_path_taken(came['path'])}; it went {_path_taken(before.get('path') or [])}")
    return CaseResult(case, "" if came["output"] == before.get("output") else "its output is another one")


def case_outcome(execution: dict[str, Any]) -> dict[str, Any]:
    """What a case is held to: how it ended, which way it went, what it gave."""
    path = list(dict.fromkeys(task["referenceTaskName"] for task in execution["tasks"]))
    return {"status": execution["status"], "path": path, "output": _replace_ids(execution)}


def _replace_ids(execution: dict[str, Any]) -> Any:
    """What it gave, with names in the place of the ids of this one try: the next one draws others."""
    ids = dict.fromkeys(task["subWorkflowId"] for task in execution["tasks"] if task.get("subWorkflowId"))
    text = dumps(execution.get("output")) or "null"
    for number, id in enumerate([execution.get("workflowId"), *ids]):
        text = text.replace(id, f"id {number}") if id else text
    return loads(text)


def _path_taken(path: list[str]) -> str:
    shown = path if len(path) <= 8 else [*path[:7], "…"]
    return " → ".join(shown) or "nowhere"
