"""Simulation of a workflow in memory: definitions are read and scripts run, but nothing is saved."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

from ... import clock, randomness
from ...access.current_actor import current_user_id
from ...access.uses import readable_variables, require_uses, starter_refusal
from ...core.data_requests import (
    ActiveDomains,
    CachedRunOutput,
    CachedTaskOutput,
    DataRequest,
    DefinitionByName,
    Environment,
    IdempotencyLookup,
    InlineDefinition,
    SchemaCheck,
    ScriptEvaluation,
    TaskDefinitionByName,
    UsePermission,
)
from ...core.errors import Invalid, RequestRefused
from ...core.simulation import SimulatedRun, Simulation
from ...core.simulation import SimulationScript as Written
from ...insight.runs.execution import simulated_document
from ...store.environment_variables import all_variables
from ..runs.data_loading import run_script
from ..runs.run_commands import StartRequest, new_run, with_input
from . import resolved_definitions
from .json_schema import check_against_schema

log = logging.getLogger(__name__)

MAX_SECONDS = 20.0
"""The time limit of a simulation in seconds."""


def simulate_workflow(request: StartRequest, script: Written) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the execution that the request would have as a Workflow document, and its child executions by id.

    `script`: the results of the tasks.

    Raises:
        NotFound: when there is no such definition.
        ValidationFailed: when the inline definition or the input violates a check or schema.
        Invalid: when the simulation takes too long, or the engine cannot decide it.
    """
    if request.document is not None:
        require_uses(request.document)
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


def _load_data(questions: Iterable[DataRequest]) -> Mapping[DataRequest, Any]:
    return {question: _load_one(question) for question in questions}


def _load_one(question: DataRequest) -> Any:
    match question:
        case ScriptEvaluation():
            # Endless scripts of a draft must not slow down the runs of the saved definition.
            return run_script(replace(question, definition=f"simulation of {question.definition}"))
        case DefinitionByName():
            return resolved_definitions.read_unsaved(question.name, question.version)
        case InlineDefinition():
            return resolved_definitions.resolve_inline(question.document, question.allowed_secrets)
        case TaskDefinitionByName():
            return resolved_definitions.task_document(question.name)
        case SchemaCheck():
            return check_against_schema(question)
        case IdempotencyLookup() | CachedTaskOutput() | CachedRunOutput():
            # A simulation finds no earlier runs.
            return None
        case ActiveDomains():
            # There are no workers in a simulation: the first domain is used.
            return frozenset()
        case Environment():
            variables = all_variables()
            return readable_variables(question.readable_by, variables) if question.readable_by else variables
        case UsePermission():
            return starter_refusal(current_user_id(), question.target_type, question.name)
    raise Invalid(f"A simulation cannot provide {type(question).__name__}, which this workflow needs.")
