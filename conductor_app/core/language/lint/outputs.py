"""What the steps of each type give, as far as it is known without running them."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..inline_definitions import DEFINITION, PARAM
from .findings import ANYTHING, Shape, Surroundings
from .places import Spot

DEEPEST = 12


def members(names: Iterable[str], source: str) -> Shape:
    """A map with these members, each of them anything."""
    return Shape(dict.fromkeys(names, ANYTHING), source)


def of_schema(schema: Any, source: str, depth: int = 0) -> Shape:
    """What a JSON schema promises; where it allows more than it names, anything goes."""
    if not isinstance(schema, Mapping) or depth > DEEPEST or set(schema) & {"$ref", "anyOf", "oneOf", "allOf"}:
        return ANYTHING
    inner = schema.get("properties")
    is_open = schema.get("additionalProperties") not in (None, False) or "patternProperties" in schema
    if not isinstance(inner, Mapping) or not inner or is_open:
        return ANYTHING
    return Shape({str(name): of_schema(each, source, depth + 1) for name, each in inner.items()}, source)


def of_value(value: Any, source: str, depth: int = 0) -> Shape:
    """The shape of something that was given once; an empty map says nothing."""
    if not isinstance(value, Mapping) or not value or depth > DEEPEST:
        return ANYTHING
    return Shape({str(name): of_value(inner, source, depth + 1) for name, inner in value.items()}, source)


def both(one: Shape, other: Shape) -> Shape:
    """What either of two examples has."""
    if one.members is None or other.members is None:
        return ANYTHING
    names = [*one.members, *(name for name in other.members if name not in one.members)]
    found = {name: _either(one.members.get(name), other.members.get(name)) for name in names}
    return Shape(found, one.source)


def _either(one: Shape | None, other: Shape | None) -> Shape:
    if one is None or other is None:
        return one or other or ANYTHING
    return both(one, other)


def of_definition(definition: Mapping[str, Any] | None) -> Shape:
    """What a task definition says its workers give."""
    schema = (definition or {}).get("outputSchema")
    found = of_schema(schema.get("data"), "its output schema") if isinstance(schema, Mapping) else ANYTHING
    keys = (definition or {}).get("outputKeys")
    if found.members is None and isinstance(keys, list) and keys:
        return members(map(str, keys), "the output keys of its task definition")
    return found


RESPONSE = members(("headers", "statusCode", "body", "reasonPhrase"), "what HTTP tasks give")
FIXED: Mapping[str, Shape] = {
    "HTTP": Shape({"response": RESPONSE}, "what HTTP tasks give"),
    "HTTP_POLL": Shape({"response": RESPONSE}, "what HTTP tasks give"),
    "INLINE": members(("result", "error"), "what INLINE tasks give"),
    "LAMBDA": members(("result", "error"), "what LAMBDA tasks give"),
    "JSON_JQ_TRANSFORM": members(("result", "resultList", "error"), "what jq tasks give"),
    "SWITCH": members(("evaluationResult", "selectedCase"), "what switches give"),
    "DECISION": members(("caseOutput",), "what decisions give"),
    "START_WORKFLOW": members(("workflowId",), "what START_WORKFLOW gives"),
}


def of_step(spot: Spot, known: Surroundings) -> Shape:
    """What a step gives: by its type, by its task definition's word, or by what it gave lately."""
    kind = spot.step.get("type") or "SIMPLE"
    if kind in FIXED:
        return FIXED[kind]
    if kind == "SUB_WORKFLOW":
        return _of_sub_workflow(spot, known)
    own = spot.step.get("taskDefinition")
    definition = own if isinstance(own, Mapping) else (known.tasks or {}).get(spot.name)
    promised = of_definition(definition)
    return promised if promised.members is not None else known.outputs.get(spot.name, ANYTHING)


def _of_sub_workflow(spot: Spot, known: Surroundings) -> Shape:
    param = spot.step.get(PARAM)
    name = param.get("name") if isinstance(param, Mapping) else None
    if isinstance(param, Mapping) and param.get(DEFINITION):
        written = param[DEFINITION]
        found = of_workflow(written) if isinstance(written, Mapping) else ANYTHING
    else:
        found = known.workflow_outputs.get(name, ANYTHING) if isinstance(name, str) else ANYTHING
    if found.members is None:
        return ANYTHING
    return Shape({**found.members, "subWorkflowId": ANYTHING}, found.source)


def of_workflow(document: Mapping[str, Any]) -> Shape:
    """What a workflow gives at its end: what its definition names, or else its last step's output."""
    given = document.get("outputParameters")
    if not isinstance(given, Mapping) or not given:
        return ANYTHING
    return members(map(str, given), f"the output parameters of {document.get('name')}")


def inputs_of(document: Mapping[str, Any]) -> Shape:
    """What a workflow may expect as its input, where its definition says so."""
    schema = document.get("inputSchema")
    found = of_schema(schema.get("data"), "the input schema") if isinstance(schema, Mapping) else ANYTHING
    named = document.get("inputParameters")
    if found.members is None and isinstance(named, list) and named:
        template = document.get("inputTemplate")
        more = template if isinstance(template, Mapping) else {}
        return members((*map(str, named), *map(str, more)), "the input parameters")
    return found
