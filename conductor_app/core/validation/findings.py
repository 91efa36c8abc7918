"""Lint findings, the context that they need beside the document, and the known shapes of payloads."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ..definition import StepSpot, structure_of, type_of
from ..document.reading import DEFINITION, PARAM
from ..human_tasks import answer_fields
from ..primitives import JsonValue
from ..step_types.loops import DoWhile, has_items, iterates_over_input
from ..step_types.sub_workflows import SubWorkflow
from ..step_types.waiting import Human

ERROR, WARNING, HINT = "error", "warning", "hint"
UNKNOWN_REFERENCE = "unknown reference"
UNKNOWN_OUTPUT = "unknown output"
UNKNOWN_INPUT = "unknown input"
UNKNOWN_NAME = "unknown name"
TOO_EARLY = "not there yet"
UNREACHABLE = "unreachable"
UNJOINED = "join"
NO_TIMEOUT = "no timeout"
NO_DEFINITION = "no task definition"
NO_WORKER = "no worker"
NAME_CLASH = "name clash"
UNREADABLE = "unreadable"
REFUSED = "refused"
NO_RESULT = "no result"
UNKNOWN_FIELD = "unknown field"
UNUSABLE_SCHEMA = "unusable schema"
NO_ADDRESS = "no address"
UNREAD_ANSWER = "unread answer"
BROKEN = frozenset((UNKNOWN_REFERENCE, UNKNOWN_NAME, NAME_CLASH, UNREADABLE, REFUSED, UNJOINED))
"""The codes of findings for definitions that cannot work as intended."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A finding: severity, code, position and message.

    `meant`: the name that was probably meant; `written`: the text that it would replace.
    """

    severity: str
    kind: str
    path: str
    message: str
    written: str = ""
    meant: str = ""


@dataclass(frozen=True)
class PayloadShape:
    """Known shape of a payload: the members of a map and the source of this knowledge.

    Without members, any value is possible.
    """

    members: Mapping[str, "PayloadShape"] | None = None
    source: str = ""

    def member(self, name: str) -> "PayloadShape | None":
        """Return the shape of a member, or None if the member is known not to exist."""
        return ANYTHING if self.members is None else self.members.get(name)


ANYTHING = PayloadShape()


@dataclass(frozen=True)
class LintContext:
    """The context of lint: other definitions by name, recent outputs of tasks, active workers.

    `outputs` and `workflow_outputs` hold the known shapes of the outputs of tasks and workflows; `tasks` is None if
    they are unknown. `received`: the workflows that webhooks name as receivers. `integrations`: the models of each
    integration. `prompts`: the names of prompts. `clusters`: the names and the servers of Kafka clusters. `limited`: of
    which of these kinds the actor knows some names only.
    """

    tasks: Mapping[str, Mapping[str, Any]] | None = None
    workflows: Mapping[str, frozenset[int]] | None = None
    outputs: Mapping[str, PayloadShape] = field(default_factory=dict)
    workflow_outputs: Mapping[str, PayloadShape] = field(default_factory=dict)
    worked: frozenset[str] | None = None
    bare_names: frozenset[str] = frozenset()
    received: frozenset[str] | None = None
    integrations: Mapping[str, frozenset[str]] | None = None
    prompts: frozenset[str] | None = None
    clusters: frozenset[str] | None = None
    limited: frozenset[str] = frozenset()


MAX_COMPARED_NAMES = 1_000
"""The number of known names from which on none is suggested: comparing a name with 1,000 others takes 3 ms."""


def closest_name(name: str, known: Any) -> str:
    """Return the most similar known name, or "" if there is none or too many to compare."""
    known = [each for each in known if each != name]
    if len(known) > MAX_COMPARED_NAMES:
        return ""
    same = [each for each in known if each.lower() == name.lower()]
    return next(iter(same or get_close_matches(name, sorted(known), 1, 0.6)), "")


def did_you_mean(near: str) -> str:
    """Return a suggestion to append to a message, or ""."""
    return f" Did you mean `{near}`?" if near else ""


MAX_DEPTH = 12


def members_shape(names: Iterable[str], source: str) -> PayloadShape:
    """Return the shape of a map with these members of unknown shape."""
    return PayloadShape(dict.fromkeys(names, ANYTHING), source)


def schema_shape(schema: JsonValue, source: str, depth: int = 0) -> PayloadShape:
    """Return the shape that a JSON schema guarantees. Members are unknown if it allows additional ones."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH or set(schema) & {"$ref", "anyOf", "oneOf", "allOf"}:
        return ANYTHING
    inner = schema.get("properties")
    is_open = schema.get("additionalProperties") not in (None, False) or "patternProperties" in schema
    if not isinstance(inner, Mapping) or not inner or is_open:
        return ANYTHING
    return PayloadShape({str(name): schema_shape(each, source, depth + 1) for name, each in inner.items()}, source)


def value_shape(value: JsonValue, source: str, depth: int = 0) -> PayloadShape:
    """Return the shape of an example value. An empty map has an unknown shape."""
    if not isinstance(value, Mapping) or not value or depth > MAX_DEPTH:
        return ANYTHING
    return PayloadShape({str(name): value_shape(inner, source, depth + 1) for name, inner in value.items()}, source)


def merge_shapes(one: PayloadShape, other: PayloadShape) -> PayloadShape:
    """Return the shape that covers two examples."""
    if one.members is None or other.members is None:
        return ANYTHING
    names = [*one.members, *(name for name in other.members if name not in one.members)]
    found = {name: _merge_members(one.members.get(name), other.members.get(name)) for name in names}
    return PayloadShape(found, one.source)


def _merge_members(one: PayloadShape | None, other: PayloadShape | None) -> PayloadShape:
    if one is None or other is None:
        return one or other or ANYTHING
    return merge_shapes(one, other)


def step_output_shape(spot: StepSpot, known: LintContext) -> PayloadShape:
    """Return the output shape of a step: by its type, its task definition, or recent outputs."""
    kind = type_of(spot.step)
    if members := structure_of(kind).output_members:
        return _fixed_shape(members, f"the output of {kind}")
    if kind == DoWhile.type:
        return _loop_shape(spot.step)
    if kind == Human.type and (fields := answer_fields(spot.step)):
        return members_shape(fields, "its form")
    if kind == SubWorkflow.type:
        param = spot.step.get(PARAM)
        name = param.get("name") if isinstance(param, Mapping) else None
        if isinstance(param, Mapping) and param.get(DEFINITION):
            written = param[DEFINITION]
            found = workflow_output_shape(written) if isinstance(written, Mapping) else ANYTHING
        else:
            found = known.workflow_outputs.get(name, ANYTHING) if isinstance(name, str) else ANYTHING
        if found.members is None:
            return ANYTHING
        return PayloadShape({**found.members, "subWorkflowId": ANYTHING}, found.source)
    own = spot.step.get("taskDefinition")
    definition = own if isinstance(own, Mapping) else (known.tasks or {}).get(spot.name)
    promised = _task_output_shape(definition)
    return promised if promised.members is not None else known.outputs.get(spot.name, ANYTHING)


def _fixed_shape(members: Mapping[str, Any] | None, source: str) -> PayloadShape:
    """Return the shape of an output whose members a step type fixes."""
    if members is None:
        return ANYTHING
    return PayloadShape({name: _fixed_shape(inner, source) for name, inner in members.items()}, source)


def _loop_shape(step: Mapping[str, Any]) -> PayloadShape:
    """Return the output shape of a loop, without the members that are numbers of iterations."""
    of_list = ("loopItem", "loopIndex") if has_items(step) else ()
    of_input = ("item", "index") if iterates_over_input(step) else ()
    return members_shape(("iteration", *of_list, *of_input), "the output of DO_WHILE")


def _task_output_shape(definition: Mapping[str, Any] | None) -> PayloadShape:
    schema = (definition or {}).get("outputSchema")
    found = schema_shape(schema.get("data"), "its output schema") if isinstance(schema, Mapping) else ANYTHING
    keys = (definition or {}).get("outputKeys")
    if found.members is None and isinstance(keys, list) and keys:
        return members_shape(map(str, keys), "the output keys of its task definition")
    return found


def workflow_output_shape(document: Mapping[str, Any]) -> PayloadShape:
    """Return the output shape of a workflow: the output of its definition, otherwise that of its last step."""
    given = document.get("outputParameters")
    if not isinstance(given, Mapping) or not given:
        return ANYTHING
    return members_shape(map(str, given), f"the output parameters of {document.get('name')}")


def workflow_input_shape(document: Mapping[str, Any]) -> PayloadShape:
    """Return the input shape of a workflow if its definition declares one."""
    schema = document.get("inputSchema")
    found = schema_shape(schema.get("data"), "the input schema") if isinstance(schema, Mapping) else ANYTHING
    named = document.get("inputParameters")
    if found.members is None and isinstance(named, list) and named:
        template = document.get("inputTemplate")
        more = template if isinstance(template, Mapping) else {}
        return members_shape((*_input_names(named), *map(str, more)), "the input parameters")
    return found


def _input_names(named: list[Any]) -> Iterator[str]:
    """Yield the names of input parameters. An element may be JSON text: an object whose names they are."""
    for each in named:
        try:
            described = json.loads(each) if isinstance(each, str) and each.lstrip().startswith("{") else None
        except (ValueError, RecursionError):
            described = None
        yield from map(str, described) if isinstance(described, dict) else (str(each),)
