"""Lint of valid steps that are hardly what their author means: no address, that of a sample, an unread answer."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..definition import StepSpot, type_of
from ..expressions.json_text import expression_texts
from ..human_tasks import answer_fields
from ..primitives import JsonValue
from ..step_types.ai import CallMcpToolStep
from ..step_types.waiting import Human
from ..step_types.worker_tasks import HttpPollStep, HttpStep
from .findings import NO_ADDRESS, UNREAD_ANSWER, WARNING, LintContext, LintFinding

HTTP = (HttpStep.type, HttpPollStep.type)
SAMPLE_ADDRESS = re.compile(r"\s*(?:https?://)?(?:www\.)?(example\.(?:com|net|org))(?![\w.-])", re.IGNORECASE)
"""Addresses of hosts that are reserved for examples."""


def lint_addresses(found: Iterable[StepSpot], known: LintContext) -> Iterator[LintFinding]:
    """Yield a warning for each step that calls no address, or the one that the editor's sample contains."""
    for spot in found:
        inputs = _mapping(spot.step.get("inputParameters"))
        if type_of(spot.step) in HTTP:
            yield from _lint_uri(spot, inputs, known)
        elif type_of(spot.step) == CallMcpToolStep.type:
            yield from _sample_finding(spot, inputs.get("mcpServer"), "mcpServer")


def _lint_uri(spot: StepSpot, inputs: Mapping[str, Any], known: LintContext) -> Iterator[LintFinding]:
    request = inputs.get("http_request")
    if isinstance(request, str):
        return
    place, holder = ("http_request.uri", request) if isinstance(request, Mapping) else ("uri", inputs)
    own = spot.step.get("taskDefinition")
    definition = own if isinstance(own, Mapping) else (known.tasks or {}).get(spot.name, {})
    template = _mapping(definition.get("inputTemplate"))
    uri = holder.get("uri") or inputs.get("uri")
    if not uri and not {"uri", "http_request"} & template.keys():
        message = f"`{spot.ref}` has no URL, so it fails. Enter the address that it calls as URL (`uri`)."
        yield LintFinding(WARNING, NO_ADDRESS, f"{spot.path}.inputParameters.{place}", message)
    yield from _sample_finding(spot, uri, place)


def _sample_finding(spot: StepSpot, address: JsonValue, place: str) -> Iterator[LintFinding]:
    if isinstance(address, str) and (sample := SAMPLE_ADDRESS.match(address)):
        message = (
            f"`{spot.ref}` calls {sample[1]}, which exists only for examples. Enter the address that it should call."
        )
        yield LintFinding(WARNING, NO_ADDRESS, f"{spot.path}.inputParameters.{place}", message, address)


def lint_answers(document: Mapping[str, Any], found: list[StepSpot]) -> Iterator[LintFinding]:
    """Yield a warning for each human task with a form whose answer is neither read nor part of the run's output."""
    asking = [
        (spot, fields) for spot in found if type_of(spot.step) == Human.type and (fields := answer_fields(spot.step))
    ]
    if not asking:
        return
    conditions = (str(spot.step.get("loopCondition") or "") for spot in found)
    expressions = "\n".join((*expression_texts(document), *conditions))
    last = max(spot.levels[0].index for spot in found)
    for spot, fields in asking:
        is_output = not document.get("outputParameters") and spot.levels[0].index == last
        if is_output or any(_is_read(ref, expressions) for ref in _outputs_with(spot, found)):
            continue
        field = f"${{{spot.ref}.output.{fields[0]}}}"
        message = (
            f"No step reads the answer of `{spot.ref}`: the run continues in the same way whatever a person answers. "
            f"Add a Switch that reads `{field}`, or pass it to a later step."
        )
        yield LintFinding(WARNING, UNREAD_ANSWER, f"{spot.path}.inputParameters", message)


def _is_read(ref: str, expressions: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(ref)}(?![\w-])", expressions))


def _outputs_with(spot: StepSpot, found: list[StepSpot]) -> set[str]:
    """Return the references of the steps whose outputs contain that of a step: those around it, and their joins."""
    around = {spot.ref, *(other.ref for other in found if spot.path.startswith(f"{other.path}."))}
    joined = ((other.ref, other.step.get("joinOn")) for other in found)
    joins = {ref for ref, refs in joined if isinstance(refs, list) and around.intersection(map(str, refs))}
    return (around | joins) - {""}


def _mapping(value: JsonValue) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
