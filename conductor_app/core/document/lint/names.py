"""Lint of names: undefined task definitions and workflows, tasks without workers or response timeouts."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...step_structure import DEFAULT_TYPE, type_of
from ...step_tree import StepSpot
from ...step_types.start_workflow import StartWorkflow
from ...step_types.sub_workflow import SubWorkflow
from .findings import (
    HINT,
    NO_DEFINITION,
    NO_TIMEOUT,
    NO_WORKER,
    UNKNOWN_NAME,
    WARNING,
    LintContext,
    LintFinding,
    closest_name,
    did_you_mean,
)

LIMITS = ("timeoutSeconds", "responseTimeoutSeconds", "totalTimeoutSeconds")


def lint_names(document: Mapping[str, Any], found: list[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield the findings on names. Each task name is reported once."""
    failure = document.get("failureWorkflow")
    if failure and failure == document.get("name"):
        message = f"A failed run of `{failure}` starts `{failure}` again, whose failure starts the next one."
        yield LintFinding(WARNING, UNKNOWN_NAME, "failureWorkflow", message, str(failure))
    else:
        yield from _lint_workflow_name(failure, None, "failureWorkflow", known)
    said: set[str] = set()
    for spot in found:
        kind = type_of(spot.step)
        if kind == DEFAULT_TYPE and spot.name not in said:
            said.add(spot.name)
            yield from _lint_task_name(spot, known)
        elif kind in (SubWorkflow.type, StartWorkflow.type):
            yield from _lint_sub_workflow(spot, document, known)


def _lint_task_name(spot: StepSpot, known: LintContext) -> Iterator[LintFinding]:
    own, path = spot.step.get("taskDefinition"), f"{spot.path}.name"
    definition = own if isinstance(own, Mapping) else (known.tasks or {}).get(spot.name)
    if definition is None and known.tasks is not None and spot.name:
        near = closest_name(spot.name, known.tasks)
        usual = "three retries a minute apart, an hour to answer"
        message = f"There is no task definition `{spot.name}`. It gets the defaults: {usual}.{did_you_mean(near)}"
        yield LintFinding(WARNING if near else HINT, NO_DEFINITION, path, message, spot.name, near)
    elif definition is not None and not any(_seconds(definition, limit) for limit in LIMITS):
        message = f"`{spot.name}` has no time limit: if its worker falls silent, the run waits for ever."
        yield LintFinding(WARNING, NO_TIMEOUT, path, message, spot.name)
    if known.worked is not None and spot.name and spot.name not in known.worked:
        yield LintFinding(HINT, NO_WORKER, path, f"No worker has ever polled `{spot.name}`.", spot.name)


def _seconds(definition: Mapping[str, Any], name: str) -> bool:
    value = definition.get(name)
    if value is None:
        # A task definition without a response timeout gets one hour.
        return name == "responseTimeoutSeconds"
    return value not in (0, "0", "")


def _lint_sub_workflow(spot: StepSpot, document: Mapping[str, Any], known: LintContext) -> Iterator[LintFinding]:
    if type_of(spot.step) == SubWorkflow.type:
        param, place = spot.step.get("subWorkflowParam"), f"{spot.path}.subWorkflowParam.name"
    else:
        given = spot.step.get("inputParameters")
        param = given.get("startWorkflow") if isinstance(given, Mapping) else None
        place = f"{spot.path}.inputParameters.startWorkflow.name"
    if not isinstance(param, Mapping) or param.get("workflowDefinition"):
        return
    if param.get("name") == document.get("name") and len(spot.levels) == 1 and type_of(spot.step) == SubWorkflow.type:
        message = f"`{param.get('name')}` starts itself here, in every run: that never ends."
        yield LintFinding(WARNING, UNKNOWN_NAME, place, message, str(param.get("name")))
    else:
        yield from _lint_workflow_name(param.get("name"), param.get("version"), place, known)


def _lint_workflow_name(name: Any, version: Any, path: str, known: LintContext) -> Iterator[LintFinding]:
    if not isinstance(name, str) or not name or "${" in name or known.workflows is None:
        return
    if name not in known.workflows:
        near = closest_name(name, known.workflows)
        yield LintFinding(
            WARNING, UNKNOWN_NAME, path, f"There is no workflow `{name}`.{did_you_mean(near)}", name, near
        )
    elif isinstance(version, int) and version and version not in known.workflows[name]:
        have = ", ".join(map(str, sorted(known.workflows[name])[-5:]))
        message = f"Workflow `{name}` has no version {version}; there is {have}."
        yield LintFinding(WARNING, UNKNOWN_NAME, path.replace(".name", ".version"), message, str(version))
