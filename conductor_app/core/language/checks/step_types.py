"""What each type of step must be given (api §3.4): one check a type, one table that finds it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import StepRefused
from ...steps.wait import milliseconds, moment
from .values import Place

Step = Mapping[str, Any]
Check = Callable[[Step, Mapping[str, Any]], Iterator[str]]
"""Gives the fields that are missing, or sentences of its own, from a step and the input template under its inputs."""


def check_step_type(step: Step, place: Place, template: Mapping[str, Any]) -> None:
    """Complain of what a step of its type lacks."""
    check = CHECKS.get(step["type"])
    if check is None:
        return
    own = (step.get("taskDefinition") or {}).get("inputTemplate") or {}
    for found in check(step, {**template, **own}):
        is_sentence = " " in found
        required = f"{found} field is required for taskType: {step['type']} taskName: {step.get('name', '')}"
        place.complain(found if is_sentence else required)


def needs(*names: str) -> Check:
    """A check for fields that must not be empty."""
    return lambda step, template: (name for name in names if not step.get(name))


def decision(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    if step.get("caseValueParam") is None and step.get("caseExpression") is None:
        yield "caseValueParam"
    yield from needs("decisionCases")(step, template)


def do_while(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    # An empty condition passes: then the list of items alone counts.
    if step.get("loopCondition") is None:
        yield "loopCondition"
    yield from needs("loopOver")(step, template)


def dynamic_fork(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    pair = [step.get("dynamicForkTasksParam"), step.get("dynamicForkTasksInputParamName")]
    if "forkTaskInputs" in step["inputParameters"]:
        return
    if step.get("dynamicForkJoinTasksParam") is None:
        yield from needs("dynamicForkTasksParam", "dynamicForkTasksInputParamName")(step, template)
    elif any(name is not None for name in pair):
        yield (
            "dynamicForkJoinTasksParam or combination of dynamicForkTasksInputParamName and dynamicForkTasksParam "
            f"cannot be used together for taskType: FORK_JOIN_DYNAMIC taskName: {step.get('name', '')}"
        )


def input_named(*names: str) -> Check:
    """A check for inputs of which one must be there, in the step or in its template."""

    def check(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
        if not any(name in step["inputParameters"] or name in template for name in names):
            yield f"inputParameters.{names[0]}"

    return check


def terminate(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    if step["optional"]:
        yield f"terminate task cannot be optional, taskName: {step.get('name', '')}"
    if step["inputParameters"].get("terminationStatus") not in ("COMPLETED", "FAILED", "TERMINATED"):
        yield (
            "terminate task must have an terminationStatus parameter and must be set to COMPLETED, FAILED or "
            f"TERMINATED, taskName: {step.get('name', '')}"
        )


def wait(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    duration, until = (step["inputParameters"].get(name) or "" for name in ("duration", "until"))
    if duration and until:
        yield "Both 'duration' and 'until' specified. Please provide only one input"
    for value, read in ((duration, milliseconds), (until, lambda text: moment(text))):
        try:
            if value and "${" not in str(value):
                read(value)
        except StepRefused as refused:
            yield refused.message


CHECKS: dict[str, Check] = {
    "EVENT": needs("sink"),
    "DECISION": decision,
    "SWITCH": needs("evaluatorType", "expression", "decisionCases"),
    "DYNAMIC": needs("dynamicTaskNameParam"),
    "DO_WHILE": do_while,
    "FORK_JOIN": needs("forkTasks"),
    "FORK_JOIN_DYNAMIC": dynamic_fork,
    "HTTP": input_named("http_request", "uri", "method"),
    "HTTP_POLL": input_named("http_request", "uri", "method"),
    "JDBC": input_named("statement"),
    "KAFKA_PUBLISH": input_named("kafka_request"),
    "JSON_JQ_TRANSFORM": input_named("queryExpression"),
    "SUB_WORKFLOW": needs("subWorkflowParam"),
    "TERMINATE": terminate,
    "WAIT": wait,
}
