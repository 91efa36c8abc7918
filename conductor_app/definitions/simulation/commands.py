"""Simulation of a workflow in memory, and what uses it: the test cases of workflows, and saved workflow tests.

Definitions are read and scripts run, but a simulation writes nothing.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from time import monotonic
from typing import Any

from ...access.authentication import current_user_id
from ...access.grants import starter_refusal
from ...access.secrets import all_variables
from ...core import data_requests
from ...core.errors import Conflict, Invalid, NotFound, QuotaExceeded, RequestRefused
from ...core.simulation import SimulatedOutcome, SimulatedRun, Simulation, SimulationScript, build_script
from ...db.fields import dumps, loads
from ...runs.commands.loaded_data import run_script
from ...runs.commands.start import StartRequest, new_run, with_input
from ...runs.documents.workflows import simulated_document
from ...utils import clock, process_state, randomness
from .. import resolved_definitions
from ..models import SaveRequirement, SimulationCase, WorkflowTest
from ..schemas import check_against_schema

log = logging.getLogger(__name__)
MAX_SECONDS = 20.0
"""The time limit of a simulation in seconds."""
MAX_AT_ONCE = 20
MAX_PARALLEL_TESTS = 2
"""The tests of workflows that a process simulates at the same time: each may take MAX_SECONDS of processor time."""
RETENTION_MS = 86_400_000
_simulations = process_state.slot(lambda: BoundedSemaphore(MAX_PARALLEL_TESTS))


def simulate_workflow(
    request: StartRequest, script: SimulationScript
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the execution that the request would have as a Workflow document, and its child executions by id.

    `script`: the results of the tasks.

    Raises:
        ValidationFailed: when the inline definition or the input violates a check or schema.
        Invalid: when the simulation takes too long, or the engine cannot decide it.
    """
    request = with_input(request)
    now, ends_at = clock.now(), monotonic() + MAX_SECONDS
    run = new_run(
        request,
        resolved_definitions.resolve_requested(request.name, request.version, request.document),
        now,
        randomness.random_hex(),
    )
    play = Simulation(now, _load_data, lambda: monotonic() > ends_at)
    try:
        part = play.play(run, script)
    except RequestRefused:
        raise
    except Exception as fault:
        log.exception("simulation_failed", extra={"definition": run.definition.name})
        raise Invalid(f"The engine cannot decide the next steps of this workflow: {fault}"[:500]) from fault
    children = {id: _execution_document(each, play.now) for id, each in play.parts.items() if id != run.id}
    return _execution_document(part, play.now), children


def _execution_document(part: SimulatedRun, now: int) -> dict[str, Any]:
    tasks = part.run.tasks
    rows = [(attempt, tasks[task.key]) for attempt, task in part.attempts.values() if task.key in tasks]
    return simulated_document(part.run, sorted(rows, key=lambda row: row[0].seq), now)


def _load_data(questions: Iterable[data_requests.DataRequest]) -> Mapping[data_requests.DataRequest, Any]:
    return {question: _load_one(question) for question in questions}


def _load_one(question: data_requests.DataRequest) -> Any:
    match question:
        case data_requests.ScriptEvaluation():
            # Endless scripts of a draft must not slow down the runs of the saved definition.
            return run_script(replace(question, definition=f"simulation of {question.definition}"))
        case data_requests.DefinitionByName():
            return resolved_definitions.read_unsaved(question.name, question.version)
        case data_requests.InlineDefinition():
            return resolved_definitions.resolve_inline(question.document, question.allowed_secrets)
        case data_requests.TaskDefinitionByName():
            return resolved_definitions.task_document(question.name)
        case data_requests.SchemaCheck():
            return check_against_schema(question)
        case data_requests.IdempotencyLookup() | data_requests.CachedTaskOutput() | data_requests.CachedRunOutput():
            # A simulation finds no earlier runs.
            return None
        case data_requests.ActiveDomains():
            # There are no workers in a simulation: the first domain is used.
            return frozenset()
        case data_requests.Environment():
            return all_variables()
        case data_requests.UsePermission():
            return starter_refusal(current_user_id(), question.target_type, question.name)
    raise Invalid(f"A simulation cannot provide {type(question).__name__}, which this workflow needs.")


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Result of one case. `differs`: what differs from the saved result; empty if nothing does."""

    case: SimulationCase
    differs: str = ""


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
        actual = case_outcome(simulate_with_children(document, case.input, outcomes)[0])
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


def test_workflow(request: StartRequest, script: SimulationScript, by: str) -> dict[str, Any]:
    """Simulate a workflow, save its execution and those of its children, and return it as a Workflow document.

    The executions are saved as documents, separate from runs: workers cannot poll their tasks.

    Raises:
        ValidationFailed: when the inline definition or the input violates a check or schema.
        Invalid: when the simulation takes too long, or the engine cannot decide it.
        QuotaExceeded: when MAX_PARALLEL_TESTS other tests run in this process.
    """
    slots = _simulations.value
    if not slots.acquire(blocking=False):
        raise QuotaExceeded(
            f"{MAX_PARALLEL_TESTS} tests of workflows run in this process already. Send the request again.",
            round(MAX_SECONDS),
        )
    try:
        document, children = simulate_workflow(request, script)
    finally:
        slots.release()
    now = clock.now()
    WorkflowTest.objects.bulk_create(
        [
            WorkflowTest(id=each["workflowId"], name=each["workflowName"], document=each, created_at=now, created_by=by)
            for each in (document, *children.values())
        ]
    )
    return document


def find_test(id: str) -> dict[str, Any]:
    """Return the saved execution of a test as a Workflow document."""
    test = WorkflowTest.objects.filter(pk=id).first()
    if test is None:
        raise NotFound(f"No such workflow found by id: {id}")
    return test.document


def delete_old_tests(now: int) -> None:
    """Delete the tests that are older than RETENTION_MS."""
    WorkflowTest.objects.filter(created_at__lt=now - RETENTION_MS).delete()
