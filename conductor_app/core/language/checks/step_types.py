"""What each type of step must be given (api §3.4): one check a type, one table that finds it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from ...errors import StepRefused
from ...expressions.patterns import BadPattern, compile_pattern
from ...step_types.wait import milliseconds, moment
from .reading import inner_steps
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


def for_each(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    yield from needs("loopOver")(step, template)
    given, name = {**template, **step["inputParameters"]}, step.get("name", "")
    if step.get("items") in (None, "") and "_items" not in given:
        yield f"items field is required for taskType: FOR_EACH taskName: {name}"
    for field, least in (("parallel", 1), ("keepLastN", 0)):
        if not is_whole(given.get(field), least):
            yield f"{field} of taskName: {name} must be a whole number from {least} on, or an expression"
    policy = given.get("onItemFailure")
    if policy not in (None, "", *ON_ITEM_FAILURE) and not is_expression(policy):
        yield f"onItemFailure of taskName: {name}: {unknown(str(policy), ON_ITEM_FAILURE)}"


def is_whole(value: Any, least: int) -> bool:
    """Whether a value may stand for a whole number: it is one, it is left out, or only a run knows it."""
    if value in (None, "") or is_expression(value):
        return True
    text = str(value)
    return not isinstance(value, bool) and text.isascii() and text.isdigit() and int(text[:18]) >= least


def is_expression(value: Any) -> bool:
    return isinstance(value, str) and "${" in value


def try_catch(step: Step, template: Mapping[str, Any]) -> Iterator[str]:
    yield from needs("tryTasks")(step, template)
    cases, name = step.get("catchCases") or (), step.get("name", "")
    if not (cases or step.get("catchDefault") or step.get("finallyTasks")):
        yield f"taskType: TRY_CATCH taskName: {name} needs catchCases, catchDefault or finallyTasks"
    refs = set(references(step.get("tryTasks") or ()))
    for index, case in enumerate(cases):
        for complaint in match_complaints((case or {}).get("match") or {}, refs):
            yield f"catchCases[{index}].match of taskName: {name}: {complaint}"


def match_complaints(match: Mapping[str, Any], refs: set[str]) -> Iterator[str]:
    """What is wrong with what a handler wants of a failure."""
    for field, value in match.items():
        if value is None:
            continue
        values = value if isinstance(value, list) else [value]
        if field not in MATCHED:
            yield unknown(field, MATCHED)
        elif not all(isinstance(each, str) for each in values) or (field == "reason" and len(values) != 1):
            yield f"{field} must be text" + ("" if field == "reason" else ", or a list of texts")
        elif field == "reason":
            yield from pattern_complaints(values[0])
        elif field in ("status", "taskRef"):
            known = ENDS_BADLY if field == "status" else refs
            yield from (unknown(each, known) for each in values if each not in known)


def pattern_complaints(pattern: str) -> Iterator[str]:
    """Why a text cannot be looked for in reasons."""
    try:
        compile_pattern(pattern)
    except BadPattern as problem:
        yield f"reason {pattern[:100]!r} cannot be used: {problem}"


def unknown(given: str, known: Iterable[str]) -> str:
    """A word that means nothing here, with the one that may have been meant."""
    near = get_close_matches(given, sorted(known), 1)
    meant = f"; did you mean {near[0]}?" if near else f": use one of {', '.join(sorted(known)[:20])}."
    return f"{given[:100]!r} is not known{meant}"


def references(steps: Iterable[Any]) -> Iterator[str]:
    """The references of all steps in a body."""
    for step in filter(None, steps):
        yield step.get("taskReferenceName") or ""
        for _place, inner in inner_steps(step):
            yield from references(inner)


ON_ITEM_FAILURE = ("FAIL", "CONTINUE")
MATCHED = ("status", "reason", "taskRef", "taskType")
ENDS_BADLY = ("FAILED", "FAILED_WITH_TERMINAL_ERROR", "TIMED_OUT", "CANCELED")

CHECKS: dict[str, Check] = {
    "EVENT": needs("sink"),
    "DECISION": decision,
    "SWITCH": needs("evaluatorType", "expression", "decisionCases"),
    "DYNAMIC": needs("dynamicTaskNameParam"),
    "DO_WHILE": do_while,
    "FOR_EACH": for_each,
    "FORK_JOIN": needs("forkTasks"),
    "FORK_JOIN_DYNAMIC": dynamic_fork,
    "HTTP": input_named("http_request", "uri", "method"),
    "HTTP_POLL": input_named("http_request", "uri", "method"),
    "JDBC": input_named("statement"),
    "KAFKA_PUBLISH": input_named("kafka_request"),
    "JSON_JQ_TRANSFORM": input_named("queryExpression"),
    "SUB_WORKFLOW": needs("subWorkflowParam"),
    "TERMINATE": terminate,
    "TRY_CATCH": try_catch,
    "WAIT": wait,
}
