"""Lint of the fields of documents and steps: their scripts, fields that nothing reads, and references in expressions.

A reference can have an unknown target, a target that cannot have run yet, or an unknown member.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ..decision_context import RUN_FACTS, RUN_PAYLOADS, TASK_FACTS
from ..definition import STEP_STRUCTURES, Flow, PathLevel, StepSpot, structure_of_step, type_of, walk
from ..document import fields
from ..document.reading import DEFINITION, PARAM, inputs_without_definitions, param_without_definition
from ..expressions import EVALUATORS, ScriptLanguage, evaluator, script_names, without_texts
from ..expressions.json_text import expression_texts_by_path
from ..expressions.jsonpath_segments import Property
from ..expressions.templates import Reference, parse_template
from ..primitives import JsonValue
from ..step_types.decisions import DecisionStep, Switch
from ..step_types.loops import DoWhile
from ..step_types.waiting import Wait
from ..step_types.worker_tasks import HttpPollStep, JsonJqTransform, Lambda, wrap_as_function
from .checks import UNPREFIXED_NAMES, shorten
from .findings import (
    ERROR,
    HINT,
    TOO_EARLY,
    UNKNOWN_FIELD,
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

Document = Mapping[str, Any]
BEFORE, LATER, BESIDE, SELF = "before", "later", "beside", "itself"
"""The order of one step relative to another."""
READ_FROM = ("inputParameters", PARAM, "items", "sink")
OF_A_TASK = frozenset(("input", "output", *TASK_FACTS))
OF_A_RUN = frozenset(("env", "secrets", *RUN_PAYLOADS, *RUN_FACTS))


class WrittenScript(NamedTuple):
    """A script of a step. `language`: `javascript`, `jq` or `python`. `source`: as it is evaluated."""

    path: str
    language: str
    source: str
    step: Document
    written: str

    @property
    def offset(self) -> int:
        """Return the number of characters before the written script."""
        return max(self.source.find(self.written), 0)


def scripts_of(document: JsonValue, path: str = "", depth: int = 0) -> Iterator[WrittenScript]:
    """Yield the scripts of all steps, those of inline definitions included.

    A script with `${…}` in an input is left out: only a run knows its text.
    """
    tasks = document.get("tasks") if isinstance(document, Mapping) else None
    for spot in walk(tasks, f"{path}tasks"):
        for field, language, source in _scripts_of_step(spot.step):
            if isinstance(source, str) and source.strip() and not (_is_template(field) and "${" in source):
                wrapped = str(wrap_as_function(source)) if type_of(spot.step) == Lambda.type else source
                yield WrittenScript(f"{spot.path}.{field}", language, wrapped, spot.step, source)
        param = spot.step.get(PARAM)
        if isinstance(param, Mapping) and isinstance(param.get(DEFINITION), Mapping) and depth < MAX_DEPTH:
            yield from scripts_of(param[DEFINITION], f"{spot.path}.{PARAM}.{DEFINITION}.", depth + 1)


MAX_DEPTH = 20
"""The maximum nesting of inline definitions whose scripts are read."""


def _is_template(field: str) -> bool:
    """Return True if expressions in this field of a step are resolved before it is read."""
    return field.startswith("inputParameters.")


def _scripts_of_step(step: Document) -> Iterator[tuple[str, str, Any]]:
    """Yield field, language and text of each script; the text may be any value."""
    type, field = type_of(step), structure_of_step(step).script_field
    given = step.get("inputParameters")
    inputs = given if isinstance(given, Mapping) else {}
    if type == JsonJqTransform.type:
        yield "inputParameters.queryExpression", "jq", inputs.get("queryExpression")
    elif type == HttpPollStep.type:
        request = inputs.get("http_request")
        yield "inputParameters.terminationCondition", "javascript", inputs.get("terminationCondition")
        if isinstance(request, Mapping):
            place = "inputParameters.http_request.terminationCondition"
            yield place, "javascript", request.get("terminationCondition")
    elif type == Lambda.type and not inputs.get("scriptExpression"):
        yield "scriptExpression", "javascript", step.get("scriptExpression")
    elif field and (language := _script_language(step)):
        holder = inputs if _is_template(field) else step
        yield field, language, holder.get(field.rpartition(".")[2])


def _script_language(step: Document) -> str:
    """Return the language of a step's script; an empty text if it has none, or an unknown one."""
    structure, type = structure_of_step(step), type_of(step)
    if not structure.allows_python:
        return "javascript"
    inputs = step.get("inputParameters")
    holder = inputs if _is_template(structure.script_field) else step
    name = holder.get("evaluatorType") if isinstance(holder, Mapping) else None
    if type == DoWhile.type:
        # Conductor ignores the evaluatorType of loops.
        return "python" if name == "python" else "javascript"
    found = evaluator(str(name or ("value-param" if type == Switch.type else "javascript")))
    return found.language if isinstance(found, ScriptLanguage) else ""


TEMPLATE_LITERAL = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
EXPRESSION = re.compile(r"\$\{[^}]*\}?")


def lint_evaluator(spot: StepSpot) -> Iterator[LintFinding]:
    """Yield findings on the evaluator of a step's script, on a missing script, and on expressions in it."""
    step, structure = spot.step, structure_of_step(spot.step)
    field = "inputParameters.queryExpression" if type_of(step) == JsonJqTransform.type else structure.script_field
    if not field:
        return
    given = step.get("inputParameters")
    inputs = given if isinstance(given, Mapping) else {}
    holder, path = (inputs if _is_template(field) else step), f"{spot.path}.{field}"
    script = holder.get(field.rpartition(".")[2])
    if structure.allows_python:
        yield from _lint_language(type_of(step), holder.get("evaluatorType"), script, path)
    if not isinstance(script, str) or not script.strip():
        yield from _lint_missing(step, script, path)
    elif not _is_template(field) and holder.get("evaluatorType") != "value-param":
        yield from _lint_expressions(script, path)


def _lint_language(type: str, name: Any, script: Any, path: str) -> Iterator[LintFinding]:
    place = f"{path.rpartition('.')[0]}.evaluatorType"
    if not isinstance(name, str) or not name or "${" in name:
        return
    if type == DoWhile.type and name == "value-param" and isinstance(script, str) and script.strip():
        message = "Loops ignore `value-param`, as in Conductor: the condition is evaluated as JavaScript."
        yield LintFinding(WARNING, UNREADABLE, place, message, name)
    elif name not in EVALUATORS and type != DoWhile.type:
        near = closest_name(name, EVALUATORS)
        hint = did_you_mean(near) or f" Use {', '.join(f'`{each}`' for each in EVALUATORS)}."
        message = f"There is no evaluator `{name}`: a run fails at this step.{hint}"
        yield LintFinding(WARNING, UNREADABLE, place, message, name, near)


def _lint_missing(step: Mapping[str, Any], script: JsonValue, path: str) -> Iterator[LintFinding]:
    """A script that is required is missing. Loops over a list need none, and a DECISION can name an input."""
    name = path.rpartition(".")[2]
    if type_of(step) in (DoWhile.type, DecisionStep.type) or (script is None and step.get(name)):
        return
    if script is None or isinstance(script, str):
        message = f"`{name}` is empty: a run fails at this step. Write the script there."
    else:
        message = f"`{name}` must be text."
    yield LintFinding(WARNING, UNREADABLE, path, message)


def _lint_expressions(script: str, path: str) -> Iterator[LintFinding]:
    """Yield a finding on `${…}` in a script that is no input. In template literals of JavaScript it has a meaning."""
    if found := EXPRESSION.search(TEMPLATE_LITERAL.sub("", script)):
        message = f"`{found[0]}` is not replaced here and stays as text. Give the value as an input, and read `$.name`."
        yield LintFinding(WARNING, UNREADABLE, path, message, found[0])


READ = re.compile(r"(?<![\w$.])\$\.(\w+)|(?<![\w$.])\$\[\s*['\"](\w+)['\"]\s*\]")
QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|//[^\n]*|/\*.*?\*/", re.DOTALL)
JAVASCRIPT_READ = re.compile(r"\$\s*[.\[]")
WRITTEN = re.compile(r"\$\.(\w+)\s*=(?!=)")


def names_read(script: str) -> set[str]:
    """Return the names of `$.name` and `$['name']`. Texts, comments and names that the script assigns are ignored."""
    bare = QUOTED.sub(_drop_unless_key, script)
    return {dotted or bracketed for dotted, bracketed in READ.findall(bare)} - set(WRITTEN.findall(bare))


def reads_as_javascript(script: str) -> bool:
    """Return True if a script in Python reads `$.name` or `$['name']`."""
    return bool(JAVASCRIPT_READ.search(without_texts(script)))


def returns_nothing(script: str) -> bool:
    """Return True if a script in Python has no `return`. One that only raises, or an empty one, returns False."""
    return bool(script.strip()) and not {"return", "raise"}.intersection(script_names(script))


def _drop_unless_key(found: re.Match[str]) -> str:
    """Remove a quoted text unless it is the key of `$['…']`."""
    before = found.string[: found.start()].rstrip()
    return found.group() if before.endswith("$[") else "''"


OTHER_NAMES = frozenset(("workflowTaskType", "callbackFromWorker", "createdBy", "tags", "overwriteTags"))
"""Fields beside those of the tables: another name of `type`, tags, and some that clients send without an effect."""
OF_TASK_DEFINITIONS = frozenset(spec.name for spec in fields.TASK_DEFINITION)
OTHER_INPUTS = frozenset(
    ("duration", "until", "terminationStatus", "terminationReason", "workflowOutput", "http_request", "kafka_request")
)
MIN_LIMITS = {"concurrentExecLimit": 0, "rateLimitPerFrequency": 0, "rateLimitFrequencyInSeconds": 1}


def lint_unknown_fields(document: Mapping[str, Any], found: list[StepSpot]) -> Iterator[LintFinding]:
    """Yield a finding for each field of a workflow definition and of its steps that has no effect."""
    for name, path in _unknown_fields(document, fields.WORKFLOW_DEFINITION):
        if path == name and name in OF_TASK_DEFINITIONS:
            message = f"`{name}` has no effect here: it is a field of task definitions."
            yield LintFinding(WARNING, UNKNOWN_FIELD, path, message, name)
        else:
            yield _unknown_field_finding(name, path, fields.WORKFLOW_DEFINITION)
    for spot in found:
        table = (*fields.WORKFLOW_TASK, *structure_of_step(spot.step).fields)
        for name, path in _unknown_fields(spot.step, table, spot.path):
            yield _finding_of_step(spot, name, path, table)
        inputs = spot.step.get("inputParameters")
        if type_of(spot.step) == Wait.type and isinstance(inputs, Mapping) and "wait_until" in inputs:
            message = "This server reads `wait_until` as `until`. Other servers ignore it and wait for ever."
            yield LintFinding(
                HINT, UNKNOWN_FIELD, f"{spot.path}.inputParameters.wait_until", message, "wait_until", "until"
            )


def lint_task_definition(document: Mapping[str, Any]) -> Iterator[LintFinding]:
    yield from lint_document(document, fields.TASK_DEFINITION)
    for name, least in MIN_LIMITS.items():
        value = document.get(name)
        if type(value) is int and value < least:
            message = f"`{name}` is {value}, which limits nothing. Use {least} or more, or leave it out."
            yield LintFinding(WARNING, UNKNOWN_FIELD, name, message)


def lint_document(
    document: Mapping[str, Any], table: fields.FieldTable, others: Collection[str] = ()
) -> Iterator[LintFinding]:
    """Yield a finding for each field that the table of a document does not have.

    `others`: fields of replies, which clients send back.
    """
    for name, path in _unknown_fields(document, table):
        if path not in others:
            yield _unknown_field_finding(name, path, table)


def _unknown_fields(document: Mapping[str, Any], table: fields.FieldTable, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and path of each field that no table knows, nested objects included. Steps are left out."""
    known = {spec.name: spec.read for spec in table}
    for name, value in document.items():
        place = f"{path}.{name}" if path else str(name)
        if name in known:
            yield from _unknown_inside(value, known[name], place)
        elif isinstance(name, str) and name not in OTHER_NAMES and name[:1] not in ("_", "$") and name[:2] != "x-":
            yield name, place


def _unknown_field_finding(name: str, path: str, table: fields.FieldTable) -> LintFinding:
    near = closest_name(name, [spec.name for spec in table])
    message = f"Nothing reads the field `{name}`.{did_you_mean(near)}"
    return LintFinding(WARNING if near else HINT, UNKNOWN_FIELD, path, message, name, near)


def _unknown_inside(value: JsonValue, read: fields.Reader, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(read, fields.ObjectOf) and isinstance(value, Mapping):
        yield from _unknown_fields(value, read.table, path)
    elif isinstance(read, fields.ListOf) and read is not fields.STEPS and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown_inside(item, read.item, f"{path}[{index}]")
    elif isinstance(read, fields.MapOf) and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _unknown_inside(item, read.item, f"{path}[{key}]")


def _finding_of_step(spot: StepSpot, name: str, path: str, table: fields.FieldTable) -> LintFinding:
    if path != f"{spot.path}.{name}":
        return _unknown_field_finding(name, path, fields.TASK_DEFINITION if ".taskDefinition." in path else table)
    if name in OF_TASK_DEFINITIONS:
        message = (
            f"`{name}` has no effect in a step: it is a field of task definitions. Write it into the task definition "
            f"`{spot.name}`, or into `taskDefinition` of this step."
        )
        return LintFinding(WARNING, UNKNOWN_FIELD, path, message, name)
    if name in input_names(type_of(spot.step)):
        message = f"`{name}` has no effect here: it is an input. Write it into `inputParameters`."
        return LintFinding(WARNING, UNKNOWN_FIELD, path, message, name)
    return _unknown_field_finding(name, path, table)


def input_names(type: str) -> frozenset[str]:
    """Return the names of inputs that a type of step reads, as far as they are declared."""
    structure = STEP_STRUCTURES.get(type)
    if structure is None:
        return frozenset()
    script = structure.script_field.partition("inputParameters.")[2]
    return OTHER_INPUTS | frozenset((*structure.required_inputs, script or "queryExpression"))


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
