"""Validation of workflow definitions (api §3.3)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...definition import possible_keys
from ...errors import ValidationError, ValidationFailed
from ...expressions.json_walk import expression_texts
from ...step_structure import structure_of_step
from ...step_tree import bodies_of, walk
from ..layout import item_reference, layout_steps
from .expressions import check_expressions
from .normalization import normalize_workflow
from .step_types import check_step_type
from .values import DocumentPosition

Document = dict[str, Any]
NO_REFERENCE = "WorkflowTask taskReferenceName name cannot be empty or null"
MAX_STEPS = 10_000
"""The maximum number of steps of a definition, nested steps and inline definitions included.

The checks of 100,000 steps take 5 s. Workflows of this size use loops, dynamic forks and sub-workflows.
"""
MAX_EXPRESSIONS = 50_000
"""The maximum number of expressions of a definition. Checks and findings of 50,000 expressions take 0.5 s."""


def workflow_errors(
    document: Any,
    *,
    owner_email_mandatory: bool = False,
    environment_names: Iterable[str] = (),
    input_templates: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[ValidationError]:
    """Return all validation errors of a workflow definition.

    `environment_names`: bare names that expressions may use; `input_templates`: those of the registered task
    definitions, by name.
    """
    place = DocumentPosition()
    if has_too_many_steps(document):
        place.at("tasks").add_error(f"A workflow definition can have at most {MAX_STEPS} steps. Use sub-workflows.")
        return place.validation_errors
    if has_too_many_expressions(document):
        place.add_error(f"A workflow definition can have at most {MAX_EXPRESSIONS} expressions. Use sub-workflows.")
        return place.validation_errors
    read = normalize_workflow(document, place)
    if not isinstance(document, dict):
        return place.validation_errors
    _check_workflow_fields(read, document, place, owner_email_mandatory)
    _check_steps(read["tasks"], place.at("tasks"), input_templates or {})
    _check_references(read, place)
    _check_inline_definitions(read["tasks"], place)
    if not place.validation_errors:
        check_expressions(read, set(document_references(read["tasks"])) | set(environment_names), place)
    return place.validation_errors


def inline_errors(document: Any, place: DocumentPosition | None = None) -> list[ValidationError]:
    """Return why the engine cannot execute a definition that is written inside another one, or that a run computed.

    Such a definition is not checked further: as in Conductor, an expression with an unknown reference gives null, and a
    step without a field that its type requires fails when control enters it.
    """
    place, own = place or DocumentPosition(), DocumentPosition()
    if has_too_many_steps(document):
        place.at("tasks").add_error(f"A workflow definition can have at most {MAX_STEPS} steps. Use sub-workflows.")
        return place.validation_errors
    read = normalize_workflow(document, own)
    if isinstance(document, dict):
        _check_workflow_fields(read, document, own, owner_email_mandatory=False)
        for spot in walk(read["tasks"]):
            if not spot.ref:
                own.at(f"{spot.path}.taskReferenceName").add_missing(NO_REFERENCE)
        _check_references(read, own)
        _check_inline_definitions(read["tasks"], own)
    if not own.validation_errors:
        try:
            layout_steps(read["tasks"])
        except ValidationFailed as refused:
            own.validation_errors.extend(refused.validation_errors)
    for error in own.validation_errors:
        place.at(error.path).add_error(error.message, error.value)
    return place.validation_errors


def _check_inline_definitions(steps: list[Document], place: DocumentPosition) -> None:
    for spot in walk(steps):
        for path, definition in structure_of_step(spot.step).inline_definitions(spot.step):
            inline_errors(definition, place.at(f"{spot.path}.{path}"))


def has_too_many_steps(document: Any) -> bool:
    """Return True if a document, which may be invalid, has more than MAX_STEPS steps."""
    count, pending = 0, [document]
    while pending:
        item = pending.pop()
        steps = item.get("tasks") if isinstance(item, dict) else item
        count += len(steps) if isinstance(steps, list) else 0
        if count > MAX_STEPS:
            return True
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, dict):
                pending += [body.steps for body in bodies_of(step)]
                param = step.get("subWorkflowParam")
                pending += [param.get("workflowDefinition")] if isinstance(param, dict) else []
    return False


def has_too_many_expressions(document: Any) -> bool:
    """Return True if a document, which may be invalid, contains `${` more than MAX_EXPRESSIONS times."""
    return sum(text.count("${") for text in expression_texts(document)) > MAX_EXPRESSIONS


def _check_workflow_fields(
    read: Document, document: Document, place: DocumentPosition, owner_email_mandatory: bool
) -> None:
    if not read.get("name"):
        place.at("name").add_missing("WorkflowDef name cannot be null or empty", document.get("name"))
    if not read["tasks"]:
        place.at("tasks").add_missing("WorkflowTask list cannot be empty")
    if read["schemaVersion"] != 2:
        place.at("schemaVersion").add_error("workflowDef schemaVersion: 2 is only supported", read["schemaVersion"])
    if owner_email_mandatory and not read.get("ownerEmail"):
        place.at("ownerEmail").add_error("ownerEmail cannot be empty")


def _check_steps(
    steps: list[Document], place: DocumentPosition, templates: Mapping[str, Any], in_loop: bool = False
) -> None:
    for index, step in enumerate(steps):
        if step is None:
            continue
        here = place.at(f"[{index}]")
        _check_step(step, here)
        if not in_loop:
            # Steps in a loop are not checked by type; clients rely on that (api §3.4).
            check_step_type(step, here, templates.get(step.get("name") or "") or {})
        structure = structure_of_step(step)
        for body in structure.bodies(step):
            _check_steps(body.steps, here.at(body.place), templates, in_loop or not structure.checks_bodies)


def _check_step(step: Document, place: DocumentPosition) -> None:
    reference = step.get("taskReferenceName")
    if not step.get("name"):
        place.at("name").add_missing("WorkflowTask name cannot be empty or null")
    if not reference:
        place.at("taskReferenceName").add_missing(NO_REFERENCE)
    if step["startDelay"] < 0:
        place.at("startDelay").add_error("must be greater than or equal to 0", step["startDelay"])


def _check_references(read: Document, place: DocumentPosition) -> None:
    found = list(_references_with_loops(read["tasks"]))
    for reference, count in Counter(reference for reference, _loops in found).items():
        if count > 1:
            place.add_error(
                f"taskReferenceName: {reference} should be unique across tasks for a given "
                f"workflowDefinition: {read.get('name', '')}"
            )
    loops = dict(found)
    for reference in loops:
        for key in possible_keys(reference):
            if key.iteration_path and loops.get(key.ref) == loops[reference] + len(key.iteration_path):
                place.add_error(
                    f"taskReferenceName: {reference} is also the name of the task of {key.ref} in iteration "
                    f"{'.'.join(map(str, key.iteration_path))}. Rename one of them."
                )


def document_references(steps: list[Document]) -> Iterator[str]:
    """Yield the references of all steps, including nested ones."""
    return (reference for reference, _loops in _references_with_loops(steps))


def _references_with_loops(steps: list[Document], loops: int = 0) -> Iterator[tuple[str, int]]:
    """Yield the reference of each step, and how many iterations the names of its tasks end with."""
    for step in filter(None, steps):
        structure = structure_of_step(step)
        if step.get("taskReferenceName"):
            yield step["taskReferenceName"], loops
            if structure.item_type:
                yield item_reference(step["taskReferenceName"]), loops + 1
        inside = loops + structure.iterates + bool(structure.item_type)
        for body in structure.bodies(step):
            yield from _references_with_loops(body.steps, inside)
