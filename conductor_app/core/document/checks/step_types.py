"""What each type of step must be given (api §3.4): one check a type, one table that finds it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from ...errors import StepRefused
from ...expressions.patterns import BadPattern, compile_pattern
from ...step_types.wait import parse_duration, parse_timestamp
from .normalization import inner_steps
from .values import DocumentPosition

Step = Mapping[str, Any]
StepCheck = Callable[[Step, Mapping[str, Any]], Iterator[str]]
"""Gives the fields that are missing, or sentences of its own, from a step and the input template under its inputs."""


def check_step_type(step: Step, place: DocumentPosition, template: Mapping[str, Any]) -> None:
    """Complain of what a step of its type lacks."""
    check = STEP_TYPE_CHECKS.get(step["type"])
    if check is None:
        return
    own = (step.get("taskDefinition") or {}).get("inputTemplate") or {}
    for found in check(step, {**template, **own}):
        is_message = " " in found
        required = f"{found} field is required for taskType: {step['type']} taskName: {step.get('name', '')}"
        place.add_error(found if is_message else required)


def require_fields(*names: str) -> StepCheck:
    """A check for fields that must not be empty."""
    return lambda step, template: (name for name in names if not step.get(name))


def check_decision(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    if step.get("caseValueParam") is None and step.get("caseExpression") is None:
        yield "caseValueParam"
    yield from require_fields("decisionCases")(step, template)


def check_do_while(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    # An empty condition passes: then the list of items alone counts.
    if step.get("loopCondition") is None:
        yield "loopCondition"
    yield from require_fields("loopOver")(step, template)


def check_dynamic_fork(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    pair = [step.get("dynamicForkTasksParam"), step.get("dynamicForkTasksInputParamName")]
    if "forkTaskInputs" in step["inputParameters"]:
        return
    if step.get("dynamicForkJoinTasksParam") is None:
        yield from require_fields("dynamicForkTasksParam", "dynamicForkTasksInputParamName")(step, template)
    elif any(name is not None for name in pair):
        yield (
            "dynamicForkJoinTasksParam or combination of dynamicForkTasksInputParamName and dynamicForkTasksParam "
            f"cannot be used together for taskType: FORK_JOIN_DYNAMIC taskName: {step.get('name', '')}"
        )


def require_one_input(*names: str) -> StepCheck:
    """A check for inputs of which one must be there, in the step or in its template."""

    def check(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
        if not any(name in step["inputParameters"] or name in template for name in names):
            yield f"inputParameters.{names[0]}"

    return check


def check_terminate(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    if step["optional"]:
        yield f"terminate task cannot be optional, taskName: {step.get('name', '')}"
    if step["inputParameters"].get("terminationStatus") not in ("COMPLETED", "FAILED", "TERMINATED"):
        yield (
            "terminate task must have an terminationStatus parameter and must be set to COMPLETED, FAILED or "
            f"TERMINATED, taskName: {step.get('name', '')}"
        )


def check_wait(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    duration, until = (step["inputParameters"].get(name) or "" for name in ("duration", "until"))
    if duration and until:
        yield "Both 'duration' and 'until' specified. Please provide only one input"
    for value, read in ((duration, parse_duration), (until, lambda text: parse_timestamp(text))):
        try:
            if value and "${" not in str(value):
                read(value)
        except StepRefused as refused:
            yield refused.message


def check_for_each(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    yield from require_fields("loopOver")(step, template)
    given, name = {**template, **step["inputParameters"]}, step.get("name", "")
    if step.get("items") in (None, "") and "_items" not in given:
        yield f"items field is required for taskType: FOR_EACH taskName: {name}"
    for field, least in (("parallel", 1), ("keepLastN", 0)):
        if not is_whole(given.get(field), least):
            yield f"{field} of taskName: {name} must be a whole number from {least} on, or an expression"
    policy = given.get("onItemFailure")
    if policy not in (None, "", *ON_ITEM_FAILURE) and not is_expression(policy):
        yield f"onItemFailure of taskName: {name}: {unknown_word_message(str(policy), ON_ITEM_FAILURE)}"


def is_whole(value: Any, least: int) -> bool:
    """Whether a value may stand for a whole number: it is one, it is left out, or only a run knows it."""
    if value in (None, "") or is_expression(value):
        return True
    text = str(value)
    return not isinstance(value, bool) and text.isascii() and text.isdigit() and int(text[:18]) >= least


def is_expression(value: Any) -> bool:
    return isinstance(value, str) and "${" in value


def check_try_catch(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    yield from require_fields("tryTasks")(step, template)
    cases, name = step.get("catchCases") or (), step.get("name", "")
    if not (cases or step.get("catchDefault") or step.get("finallyTasks")):
        yield f"taskType: TRY_CATCH taskName: {name} needs catchCases, catchDefault or finallyTasks"
    refs = set(body_references(step.get("tryTasks") or ()))
    for index, case in enumerate(cases):
        for complaint in validate_match((case or {}).get("match") or {}, refs):
            yield f"catchCases[{index}].match of taskName: {name}: {complaint}"


def validate_match(match: Mapping[str, Any], refs: set[str]) -> Iterator[str]:
    """What is wrong with what a handler wants of a failure."""
    for field, value in match.items():
        if value is None:
            continue
        values = value if isinstance(value, list) else [value]
        if field not in MATCHED:
            yield unknown_word_message(field, MATCHED)
        elif not all(isinstance(each, str) for each in values) or (field == "reason" and len(values) != 1):
            yield f"{field} must be text" + ("" if field == "reason" else ", or a list of texts")
        elif field == "reason":
            yield from validate_pattern(values[0])
        elif field in ("status", "taskRef"):
            known = ENDS_BADLY if field == "status" else refs
            yield from (unknown_word_message(each, known) for each in values if each not in known)


def validate_pattern(pattern: str) -> Iterator[str]:
    """Why a text cannot be looked for in reasons."""
    try:
        compile_pattern(pattern)
    except BadPattern as problem:
        yield f"reason {pattern[:100]!r} cannot be used: {problem}"


def unknown_word_message(given: str, known: Iterable[str]) -> str:
    """A word that means nothing here, with the one that may have been meant."""
    near = get_close_matches(given, sorted(known), 1)
    meant = f"; did you mean {near[0]}?" if near else f": use one of {', '.join(sorted(known)[:20])}."
    return f"{given[:100]!r} is not known{meant}"


def body_references(steps: Iterable[Any]) -> Iterator[str]:
    """The references of all steps in a body."""
    for step in filter(None, steps):
        yield step.get("taskReferenceName") or ""
        for _place, inner in inner_steps(step):
            yield from body_references(inner)


ON_ITEM_FAILURE = ("FAIL", "CONTINUE")
MATCHED = ("status", "reason", "taskRef", "taskType")
ENDS_BADLY = ("FAILED", "FAILED_WITH_TERMINAL_ERROR", "TIMED_OUT", "CANCELED")

STEP_TYPE_CHECKS: dict[str, StepCheck] = {
    "EVENT": require_fields("sink"),
    "DECISION": check_decision,
    "SWITCH": require_fields("evaluatorType", "expression", "decisionCases"),
    "DYNAMIC": require_fields("dynamicTaskNameParam"),
    "DO_WHILE": check_do_while,
    "FOR_EACH": check_for_each,
    "FORK_JOIN": require_fields("forkTasks"),
    "FORK_JOIN_DYNAMIC": check_dynamic_fork,
    "HTTP": require_one_input("http_request", "uri", "method"),
    "HTTP_POLL": require_one_input("http_request", "uri", "method"),
    "JDBC": require_one_input("statement"),
    "KAFKA_PUBLISH": require_one_input("kafka_request"),
    "JSON_JQ_TRANSFORM": require_one_input("queryExpression"),
    "SUB_WORKFLOW": require_fields("subWorkflowParam"),
    "TERMINATE": check_terminate,
    "TRY_CATCH": check_try_catch,
    "WAIT": check_wait,
}
