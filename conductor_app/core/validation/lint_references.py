"""Lint of references in expressions: unknown targets, targets that cannot have run yet, unknown members."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ..decision_context import RUN_FACTS, RUN_PAYLOADS, TASK_FACTS
from ..definition import Flow, PathLevel, StepSpot, structure_of, structure_of_step, type_of
from ..document.reading import DEFINITION, PARAM, inputs_without_definitions, param_without_definition
from ..expressions.json_text import expression_texts_by_path
from ..expressions.jsonpath_segments import Property
from ..expressions.templates import Reference, parse_template
from ..step_types.loops import DoWhile, has_items, iterates_over_input
from ..step_types.sub_workflows import SubWorkflow
from .checks import UNPREFIXED_NAMES, shorten

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
    integration. `prompts`: the names of prompts.
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


BEFORE, LATER, BESIDE, SELF = "before", "later", "beside", "itself"


def compare_order(source: StepSpot, reader: StepSpot) -> str:
    """Return the order of one step relative to another.

    BEFORE means that it may have ended by the time the other starts.
    """
    if source.levels == reader.levels:
        return BEFORE if _shares_loop(source.levels[:-1]) else SELF
    for depth, (theirs, ours) in enumerate(zip(source.levels, reader.levels, strict=False)):
        if theirs == ours:
            continue
        if _shares_loop(source.levels[:depth]):
            return BEFORE
        if theirs.index != ours.index:
            return BEFORE if theirs.index < ours.index else LATER
        return _compare_nested(theirs, ours)
    return BEFORE


def _compare_nested(theirs: PathLevel, ours: PathLevel) -> str:
    """Compare two steps of which one is the other, or is inside it."""
    if ours.body == -1:
        return BEFORE if theirs.flow is Flow.LOOP else LATER
    if theirs.body == -1 or theirs.flow is Flow.PHASES:
        return BEFORE if theirs.body < ours.body else BESIDE
    return BESIDE


def _shares_loop(levels: tuple[PathLevel, ...]) -> bool:
    """Return True if a loop encloses both: a later step ran in the previous iteration."""
    return any(level.flow is Flow.LOOP for level in levels)


MAX_DEPTH = 12


def members_shape(names: Iterable[str], source: str) -> PayloadShape:
    """Return the shape of a map with these members of unknown shape."""
    return PayloadShape(dict.fromkeys(names, ANYTHING), source)


def schema_shape(schema: Any, source: str, depth: int = 0) -> PayloadShape:
    """Return the shape that a JSON schema guarantees. Members are unknown if it allows additional ones."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH or set(schema) & {"$ref", "anyOf", "oneOf", "allOf"}:
        return ANYTHING
    inner = schema.get("properties")
    is_open = schema.get("additionalProperties") not in (None, False) or "patternProperties" in schema
    if not isinstance(inner, Mapping) or not inner or is_open:
        return ANYTHING
    return PayloadShape({str(name): schema_shape(each, source, depth + 1) for name, each in inner.items()}, source)


def value_shape(value: Any, source: str, depth: int = 0) -> PayloadShape:
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


def task_output_shape(definition: Mapping[str, Any] | None) -> PayloadShape:
    """Return the shape that a task definition declares for its output."""
    schema = (definition or {}).get("outputSchema")
    found = schema_shape(schema.get("data"), "its output schema") if isinstance(schema, Mapping) else ANYTHING
    keys = (definition or {}).get("outputKeys")
    if found.members is None and isinstance(keys, list) and keys:
        return members_shape(map(str, keys), "the output keys of its task definition")
    return found


def fixed_shape(members: Mapping[str, Any] | None, source: str) -> PayloadShape:
    """Return the shape of an output whose members a step type fixes."""
    if members is None:
        return ANYTHING
    return PayloadShape({name: fixed_shape(inner, source) for name, inner in members.items()}, source)


def step_output_shape(spot: StepSpot, known: LintContext) -> PayloadShape:
    """Return the output shape of a step: by its type, its task definition, or recent outputs."""
    kind = type_of(spot.step)
    if members := structure_of(kind).output_members:
        return fixed_shape(members, f"the output of {kind}")
    if kind == DoWhile.type:
        return _loop_shape(spot.step)
    if kind == SubWorkflow.type:
        return _sub_workflow_shape(spot, known)
    own = spot.step.get("taskDefinition")
    definition = own if isinstance(own, Mapping) else (known.tasks or {}).get(spot.name)
    promised = task_output_shape(definition)
    return promised if promised.members is not None else known.outputs.get(spot.name, ANYTHING)


def _loop_shape(step: Mapping[str, Any]) -> PayloadShape:
    """Return the output shape of a loop, without the members that are numbers of iterations."""
    of_list = ("loopItem", "loopIndex") if has_items(step) else ()
    of_input = ("item", "index") if iterates_over_input(step) else ()
    return members_shape(("iteration", *of_list, *of_input), "the output of DO_WHILE")


def _sub_workflow_shape(spot: StepSpot, known: LintContext) -> PayloadShape:
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


READ_FROM = ("inputParameters", PARAM, "items", "sink")
OF_A_TASK = frozenset(("input", "output", *TASK_FACTS))
OF_A_RUN = frozenset(("env", "secrets", *RUN_PAYLOADS, *RUN_FACTS))


class ReferenceLinter:
    """Lint of the references of one document."""

    def __init__(self, document: Mapping[str, Any], found: list[StepSpot], known: LintContext) -> None:
        self.document, self.spots, self.known = document, found, known
        self.by_ref = {spot.ref: spot for spot in reversed(found) if spot.ref}
        self.inputs = workflow_input_shape(document)
        self.bare = UNPREFIXED_NAMES | known.bare_names

    def findings(self) -> Iterator[LintFinding]:
        """Yield the findings on expressions in all steps and in the output."""
        for spot in self.spots:
            for name in READ_FROM:
                for path, text in texts_by_path(_without_inline_definitions(spot.step, name), f"{spot.path}.{name}"):
                    # Invalid expressions of top-level steps are refused on saving; in nested
                    # steps they would resolve to null.
                    is_top = len(spot.levels) == 1 and name == "inputParameters"
                    yield from self._check_text(text, path, spot, ERROR if is_top else WARNING)
        for path, text in texts_by_path(self.document.get("outputParameters"), "outputParameters"):
            yield from self._check_text(text, path, None, WARNING)

    def _check_text(self, text: str, path: str, reader: StepSpot | None, severity: str) -> Iterator[LintFinding]:
        for expression in parse_template(text):
            reference = expression.reference
            if reference is None:
                continue
            if reference.problem:
                written = shorten(expression.source)
                yield LintFinding(severity, UNREADABLE, path, f"`{written}` is no path: {reference.problem}.", written)
            elif reference.root:
                yield from self._check_reference(reference, expression.source, path, reader, severity)

    def _check_reference(
        self, reference: Reference, source: str, path: str, reader: StepSpot | None, severity: str
    ) -> Iterator[LintFinding]:
        root, key = reference.root, reference.key
        if root == "workflow":
            yield from self._check_run_reference(reference, path)
        elif root in self.by_ref:
            spot = self.by_ref[root]
            yield from self._check_task_reference(spot, reference, source, path, reader)
        elif root not in self.bare:
            near = closest_name(root, [*self.by_ref, "workflow"])
            written = f"{root}.{key}" if key else root
            message = f"There is no step `{root}`, so `{source}` is null.{did_you_mean(near)}"
            replaced = f"{near}.{key}" if near and key else near
            yield LintFinding(severity, UNKNOWN_REFERENCE, path, message, written, replaced)

    def _check_run_reference(self, reference: Reference, path: str) -> Iterator[LintFinding]:
        key = reference.key
        if key and key not in OF_A_RUN:
            yield unknown_part_finding("workflow", key, OF_A_RUN, "run", path)
        elif key == "input":
            yield from walk_shape(self.inputs, reference, path, UNKNOWN_INPUT, "workflow.input")

    def _check_task_reference(
        self, spot: StepSpot, reference: Reference, source: str, path: str, reader: StepSpot | None
    ) -> Iterator[LintFinding]:
        key = reference.key
        if key and key not in OF_A_TASK:
            yield unknown_part_finding(spot.ref, key, OF_A_TASK, "task", path)
            return
        yield from too_early_finding(spot, reader, source, path)
        if key == "output":
            yield from walk_shape(
                step_output_shape(spot, self.known), reference, path, UNKNOWN_OUTPUT, f"{spot.ref}.output"
            )


def _without_inline_definitions(step: Mapping[str, Any], field: str) -> Any:
    """Return a field without inline definitions, whose expressions refer to the child run."""
    if field == "inputParameters":
        return inputs_without_definitions(step)
    return param_without_definition(step) if field == PARAM else step.get(field)


def unknown_part_finding(root: str, key: str, known: frozenset[str], of: str, path: str) -> LintFinding:
    """Return a finding on a member that no run, or no task, has."""
    near = closest_name(key, known) or ("output" if of == "task" else "")
    message = f"A {of} has no `{key}`.{did_you_mean(near)}"
    return LintFinding(WARNING, UNKNOWN_OUTPUT, path, message, f"{root}.{key}", near and f"{root}.{near}")


def too_early_finding(spot: StepSpot, reader: StepSpot | None, source: str, path: str) -> Iterator[LintFinding]:
    """Yield a finding if the source step cannot have run before the reader."""
    if reader is None or (relation := compare_order(spot, reader)) == BEFORE:
        return
    if relation == SELF and structure_of_step(spot.step).flow is Flow.LOOP:
        # The inputs of a loop are put together again after each iteration.
        return
    why = {
        SELF: f"`{spot.ref}` is this step itself: it has no output when its input is put together.",
        BESIDE: f"`{spot.ref}` stands in another branch: when this step begins it need not have ended.",
    }.get(relation, f"`{spot.ref}` comes after this step: it has no output yet.")
    yield LintFinding(WARNING, TOO_EARLY, path, f"{why} `{source}` may be null.", source)


def walk_shape(shape: PayloadShape, reference: Reference, path: str, kind: str, begun: str) -> Iterator[LintFinding]:
    """Yield a finding on the first segment of a path that is known not to exist."""
    for segment in reference.path.segments:
        if not (isinstance(segment, Property) and segment.is_single):
            return
        name = segment.names[0]
        inner = shape.member(name)
        if inner is None and name.isdecimal():
            # An element of a list, or an iteration of a loop.
            return
        if inner is None:
            near = closest_name(name, shape.members or ())
            known = ", ".join(f"`{each}`" for each in list(shape.members or ())[:8])
            hint = did_you_mean(near) if near else f" Known: {known}."
            message = f"`{begun}` has no `{name}` according to {shape.source}.{hint}"
            # A near name is a slip; without one the list may just be incomplete.
            severity = WARNING if near or "schema" in shape.source else HINT
            yield LintFinding(severity, kind, path, message, f"{begun}.{name}", near and f"{begun}.{near}")
            return
        shape, begun = inner, f"{begun}.{name}"


def texts_by_path(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield every text with an expression, with its path in the document."""
    for place, text in expression_texts_by_path(value):
        yield (f"{path}.{place}" if place and not place.startswith("[") else f"{path}{place}"), text
