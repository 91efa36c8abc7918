"""Lint of references in expressions: unknown targets, targets that cannot have run yet, unknown members."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..decision_context import RUN_FACTS, RUN_PAYLOADS, TASK_FACTS
from ..definition import Flow, PathLevel, StepSpot, structure_of_step
from ..document.reading import PARAM, inputs_without_definitions, param_without_definition
from ..expressions.json_text import expression_texts_by_path
from ..expressions.jsonpath_segments import Property
from ..expressions.templates import Reference, parse_template
from ..primitives import JsonValue
from .checks import UNPREFIXED_NAMES, shorten
from .findings import (
    ERROR,
    HINT,
    TOO_EARLY,
    UNKNOWN_INPUT,
    UNKNOWN_OUTPUT,
    UNKNOWN_REFERENCE,
    UNREADABLE,
    WARNING,
    LintContext,
    LintFinding,
    PayloadShape,
    closest_name,
    did_you_mean,
    step_output_shape,
    workflow_input_shape,
)

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
        if ours.body == -1:
            return BEFORE if theirs.flow is Flow.LOOP else LATER
        if theirs.body == -1 or theirs.flow is Flow.PHASES:
            return BEFORE if theirs.body < ours.body else BESIDE
        return BESIDE
    return BEFORE


def _shares_loop(levels: tuple[PathLevel, ...]) -> bool:
    """Return True if a loop encloses both: a later step ran in the previous iteration."""
    return any(level.flow is Flow.LOOP for level in levels)


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
                for path, text in _texts_by_path(_without_inline_definitions(spot.step, name), f"{spot.path}.{name}"):
                    # Invalid expressions of top-level steps are refused on saving; in nested
                    # steps they would resolve to null.
                    is_top = len(spot.levels) == 1 and name == "inputParameters"
                    yield from self._check_text(text, path, spot, ERROR if is_top else WARNING)
        for path, text in _texts_by_path(self.document.get("outputParameters"), "outputParameters"):
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
            yield _unknown_part_finding("workflow", key, OF_A_RUN, "run", path)
        elif key == "input":
            yield from _walk_shape(self.inputs, reference, path, UNKNOWN_INPUT, "workflow.input")

    def _check_task_reference(
        self, spot: StepSpot, reference: Reference, source: str, path: str, reader: StepSpot | None
    ) -> Iterator[LintFinding]:
        key = reference.key
        if key and key not in OF_A_TASK:
            yield _unknown_part_finding(spot.ref, key, OF_A_TASK, "task", path)
            return
        yield from _too_early_finding(spot, reader, source, path)
        if key == "output":
            yield from _walk_shape(
                step_output_shape(spot, self.known), reference, path, UNKNOWN_OUTPUT, f"{spot.ref}.output"
            )


def _without_inline_definitions(step: Mapping[str, Any], field: str) -> Any:
    """Return a field without inline definitions, whose expressions refer to the child run."""
    if field == "inputParameters":
        return inputs_without_definitions(step)
    return param_without_definition(step) if field == PARAM else step.get(field)


def _unknown_part_finding(root: str, key: str, known: frozenset[str], of: str, path: str) -> LintFinding:
    """Return a finding on a member that no run, or no task, has."""
    near = closest_name(key, known) or ("output" if of == "task" else "")
    message = f"A {of} has no `{key}`.{did_you_mean(near)}"
    return LintFinding(WARNING, UNKNOWN_OUTPUT, path, message, f"{root}.{key}", near and f"{root}.{near}")


def _too_early_finding(spot: StepSpot, reader: StepSpot | None, source: str, path: str) -> Iterator[LintFinding]:
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


def _walk_shape(shape: PayloadShape, reference: Reference, path: str, kind: str, begun: str) -> Iterator[LintFinding]:
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


def _texts_by_path(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    """Yield every text with an expression, with its path in the document."""
    for place, text in expression_texts_by_path(value):
        yield (f"{path}.{place}" if place and not place.startswith("[") else f"{path}{place}"), text
