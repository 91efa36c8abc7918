"""Plans: what a run follows from its start on, with task definitions filled in and sub-workflow versions fixed."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import transaction

from ..core.definition import Definition
from ..core.document.checks import workflow_errors
from ..core.errors import NotFound, RequestRefused, ValidationFailed
from ..core.step_structure import type_of
from ..core.step_tree import map_bodies
from ..core.step_types.sub_workflow import SubWorkflow
from ..models import TaskDefinition, WorkflowDefinition
from ..store import definitions
from ..store.rows import strip_nul
from .schemas import fill_in_schemas, fill_in_schemas_of_all


class DefinitionCache:
    """What this process has read of the definitions, as of one revision of the catalogue."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.plans: dict[tuple[str, int | None], Definition | None] = {}


_known = DefinitionCache(-1)


def current_cache() -> DefinitionCache:
    """What is known of the definitions as they are now: a changed catalogue empties it."""
    global _known
    revision = definitions.definitions_revision()
    if _known.revision != revision:
        _known = DefinitionCache(revision)
    return _known


def resolve_requested(
    name: str, version: int | None, document: dict[str, Any] | None, now: int | None = None
) -> Definition:
    """The plan that somebody asks for by name or gives in place, kept for its runs if `now` is given.

    Raises NotFound, and ValidationFailed with every complaint.
    """
    if document is not None:
        return resolve_document(document, now)
    found = read_unsaved(name, version) if now is None else resolve_by_name(name, version, now)
    if found is None:
        asked = name if version is None else f"{name}, version {version}"
        raise NotFound(f"No such workflow found by name: {asked}")
    return found


def resolve_by_name(name: str, version: int | None, now: int) -> Definition | None:
    """The plan of a definition as it is now; the newest version if none is given; None if there is none."""
    known = current_cache()
    if (name, version) in known.plans:
        return known.plans[name, version]
    row = find_row(name, version)
    found = None if row is None else definitions.save_definition(fill_in_references(row.document), now)
    # Known only once its row is committed: a decision that is rolled back takes the row with it.
    transaction.on_commit(partial(known.plans.__setitem__, (name, version), found))
    return found


def resolve_document(document: dict[str, Any], now: int | None = None) -> Definition:
    """The plan of a definition given in place, kept for its runs if `now` is given.

    Raises ValidationFailed with every complaint.
    """
    if complaints := workflow_errors(document):
        raise ValidationFailed(complaints)
    whole = fill_in_references(document)
    return definitions.parse_document(whole) if now is None else definitions.save_definition(whole, now)


def resolve_inline(text: str, now: int | None = None) -> Definition | str:
    """The plan of a definition that a run has written as JSON, or the complaint about it."""
    try:
        return resolve_document(json.loads(text), now)
    except ValidationFailed as refused:
        return "; ".join(complaint.message for complaint in refused.complaints)
    except RequestRefused as refused:
        return refused.message


def read_unsaved(name: str, version: int | None) -> Definition | None:
    """The definition with this name and version, read but not kept: nothing can follow it beyond this process."""
    row = find_row(name, version)
    return None if row is None else definitions.parse_document(fill_in_references(row.document))


def find_row(name: str, version: int | None) -> WorkflowDefinition | None:
    """The definition with this name and version; the newest if no version is given."""
    rows = WorkflowDefinition.objects.filter(name=name)
    return (rows.filter(version=version) if version is not None else rows.order_by("-version")).first()


def task_document(name: str) -> dict[str, Any] | None:
    """The task definition with this name, as a document."""
    found = TaskDefinition.objects.filter(name=name).values_list("document", flat=True).first()
    return None if found is None else fill_in_schemas(found)


def fill_in_references(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with what it names written into it."""
    rows = TaskDefinition.objects.filter(name__in=names_in(document)).values_list("name", "document")
    found = fill_in_schemas_of_all(rows)
    return {
        **fill_in_schemas(dict(document)),
        "tasks": [_fill_in_step(step, found) for step in document.get("tasks") or ()],
    }


def names_in(document: Any) -> set[str]:
    """The values of every `name` in a document, steps' names among them: it need not be checked yet."""
    names, left = set(), [document]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            names |= {strip_nul(value["name"])} if isinstance(value.get("name"), str) else set()
            left += value.values()
        elif isinstance(value, list):
            left += value
    return names


def _fill_in_step(step: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    complete = map_bodies(step, lambda steps: [_fill_in_step(each, found) for each in steps])
    if not step.get("taskDefinition") and step.get("name") in found:
        complete["taskDefinition"] = found[step["name"]]
    elif isinstance(own := step.get("taskDefinition"), dict):
        complete["taskDefinition"] = fill_in_schemas(own)
    if type_of(step) == SubWorkflow.type:
        complete["subWorkflowParam"] = _pin_sub_workflow_version(step.get("subWorkflowParam") or {})
    return complete


def _pin_sub_workflow_version(param: Mapping[str, Any]) -> dict[str, Any]:
    """A sub-workflow's version is fixed when its parent starts (execution §7.1); a missing one shows when reached."""
    name = param.get("name")
    if param.get("version") or param.get("workflowDefinition") or not isinstance(name, str) or "${" in name:
        return dict(param)
    row = find_row(name, None)
    return {**param, "version": row.version} if row else dict(param)
