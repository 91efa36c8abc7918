"""Resolved definitions: the documents that runs follow, with task definitions, schemas and child versions filled in."""

import dataclasses
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..core.definition import Definition, map_bodies, type_of
from ..core.document.reading import ALLOWED_SECRETS
from ..core.errors import NotFound, RequestRefused, ValidationFailed
from ..core.primitives import JsonValue
from ..core.secret_places import limit_runtime_metadata
from ..core.step_types.sub_workflows import SubWorkflow
from ..core.validation.checks import inline_errors, workflow_errors
from ..db.database import transaction
from ..db.fields import strip_nul
from ..utils import process_state
from .models import TaskDefinition, WorkflowDefinition
from .schemas import fill_in_schemas
from .store import definitions_revision, parse_document, save_definition


class DefinitionCache:
    """Resolved definitions that this process has loaded, valid for one revision of all definitions."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.plans: dict[tuple[str, int | None], Definition] = {}


_known = process_state.slot(lambda: DefinitionCache(-1))


def current_cache() -> DefinitionCache:
    """Return the cache of this process, emptied if a definition has changed."""
    revision, known = definitions_revision(), _known.value
    if known.revision != revision:
        _known.value = known = DefinitionCache(revision)
    return known


def find_known(name: str, version: int | None) -> tuple[Definition, int] | None:
    """Return a definition that this process has loaded, and the revision of all definitions at that time, or None.

    It may have changed since then: the caller executes `REQUIRE_REVISION` in the transaction that uses it.
    """
    known = _known.value
    found = known.plans.get((name, version))
    return (found, known.revision) if found is not None and known.revision > 0 else None


def resolve_requested(
    name: str, version: int | None, document: dict[str, Any] | None, now: int | None = None
) -> Definition:
    """Return the resolved definition for a name and version, or for an inline document. It is saved if `now` is given.

    Raises:
        NotFound: when there is no definition of this name and version.
        ValidationFailed: when the document is invalid.
    """
    if document is not None:
        if validation_errors := workflow_errors(document):
            raise ValidationFailed(validation_errors)
        return _resolve_document(document, now)
    found = read_unsaved(name, version) if now is None else resolve_by_name(name, version, now)
    if found is None:
        wanted = name if version is None else f"{name}, version {version}"
        raise NotFound(f"No such workflow found by name: {wanted}")
    return found


def resolve_by_name(name: str, version: int | None, now: int) -> Definition | None:
    """Resolve and save the current definition of a name. Without a version, use the newest. Returns None if missing."""
    known = current_cache()
    if (name, version) in known.plans:
        return known.plans[name, version]
    row = find_row(name, version)
    if row is None:
        # Not cached: clients may request any number of names.
        return None
    found = save_definition(fill_in_references(row.document), now)
    if row.breakpoints:
        found = dataclasses.replace(found, breakpoints=tuple(row.breakpoints))
    # Cached only after the commit, because a rollback also removes the row.
    transaction.on_commit(partial(known.plans.__setitem__, (name, version), found))
    return found


def _resolve_document(
    document: dict[str, Any], now: int | None = None, allowed_secrets: frozenset[str] | None = None
) -> Definition:
    """Resolve a valid definition that is not registered. It is saved if `now` is given."""
    if allowed_secrets is not None:
        steps = [limit_runtime_metadata(step, allowed_secrets) for step in document["tasks"]]
        document = {**document, "tasks": steps}
    whole = {key: value for key, value in fill_in_references(document).items() if key != ALLOWED_SECRETS}
    if allowed_secrets is not None:
        whole[ALLOWED_SECRETS] = sorted(allowed_secrets)
    return parse_document(whole) if now is None else save_definition(whole, now)


def resolve_inline(
    text: str, allowed_secrets: frozenset[str] | None = None, now: int | None = None
) -> Definition | str:
    """Resolve a definition of a step, as JSON text. Returns an error message if the engine cannot execute it.

    The check is the one that the registration of the parent makes.

    `allowed_secrets`: the secrets that its steps may name, or None for those of its author.
    """
    document = json.loads(text)
    if validation_errors := inline_errors(document):
        return "; ".join(each.message for each in validation_errors)
    try:
        return _resolve_document(document, now, allowed_secrets)
    except RequestRefused as refused:
        return refused.message


def read_unsaved(name: str, version: int | None) -> Definition | None:
    """Resolve the current definition of a name without saving it. Returns None if there is none."""
    row = find_row(name, version)
    return None if row is None else parse_document(fill_in_references(row.document))


def find_row(name: str, version: int | None) -> WorkflowDefinition | None:
    """Return the row of a definition, without a version that of the newest one."""
    rows = WorkflowDefinition.objects.filter(name=name)
    return (rows.filter(version=version) if version is not None else rows.order_by("-version")).first()


def task_document(name: str) -> dict[str, Any] | None:
    """Return the document of a task definition, with its schemas filled in, or None."""
    found = TaskDefinition.objects.filter(name=name).values_list("document", flat=True).first()
    return None if found is None else fill_in_schemas(found)


def fill_in_references(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workflow document with its task definitions, schemas and child versions filled in."""
    rows = TaskDefinition.objects.filter(name__in=names_in(document)).values_list("name", "document")
    found = {name: fill_in_schemas(task) for name, task in rows}
    return {
        **fill_in_schemas(dict(document)),
        "tasks": [_fill_in_step(step, found) for step in document.get("tasks") or ()],
    }


def names_in(document: JsonValue) -> set[str]:
    """Return the values of every `name` in a document, which may be invalid. The names of its steps are among them."""
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
    if type_of(step) == SubWorkflow.type and "subWorkflowParam" in step:
        complete["subWorkflowParam"] = _pin_sub_workflow_version(step.get("subWorkflowParam") or {})
    return complete


def _pin_sub_workflow_version(param: Mapping[str, Any]) -> dict[str, Any]:
    """Fix the version of a child workflow when its parent starts (execution §7.1).

    A missing definition is reported when the run reaches the step.
    """
    name = param.get("name")
    if param.get("version") or param.get("workflowDefinition") or not isinstance(name, str) or "${" in name:
        return dict(param)
    row = find_row(name, None)
    return {**param, "version": row.version} if row else dict(param)
