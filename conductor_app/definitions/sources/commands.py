"""Export definitions as one JSON bundle, preview an import, and import."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...core.document.semantic_diff import SemanticChange, semantic_changes
from ...core.errors import Invalid, NotFound, RequestRefused, ValidationError, ValidationFailed
from ...core.step_tree import walk
from ...insight.definitions.definition_context import named_workflows
from ...insight.definitions.form_templates import find_template, named_templates
from ...models import FormTemplate, TaskDefinition, WorkflowDefinition
from . import definition_commands, form_templates

FORMAT = "conductor-app definitions"
MAX_ITEMS = 2_000
WORKFLOW, TASK, TEMPLATE = "workflow", "task", "form template"
NEW, SAME, CHANGED, REFUSED = "new", "same", "changed", "refused"
AS_NEW_VERSIONS, AS_GIVEN = "new", "given"


@dataclass(frozen=True, slots=True)
class BundleItem:
    """One definition of a bundle, and the result that its import would have."""

    kind: str
    name: str
    document: dict[str, Any]
    verdict: str
    version: int | None = None
    changes: tuple[SemanticChange, ...] = ()
    validation_errors: tuple[ValidationError, ...] = field(default=())


def export_bundle(names: Iterable[str], *, with_templates: bool = True) -> dict[str, Any]:
    """Return a bundle of the newest versions of these workflows, the workflows they start, and their task definitions.

    `with_templates`: include the form templates of their HUMAN steps.
    """
    workflows: dict[str, dict[str, Any]] = {}
    left = sorted(set(names))
    while left:
        found = {row.name: row.document for row in _newest_versions(left)}
        workflows |= found
        steps = [spot.step for document in found.values() for spot in walk(document.get("tasks"))]
        left = sorted({name for step in steps for name in named_workflows(step)} - workflows.keys())
        if not found:
            break
    tasks = {spot.name for document in workflows.values() for spot in walk(document.get("tasks"))}
    rows = TaskDefinition.objects.filter(name__in=tasks).order_by("name")
    given = {"format": FORMAT, "workflows": list(workflows.values()), "tasks": [row.document for row in rows]}
    templates = _templates(workflows.values()) if with_templates else []
    return given | ({"formTemplates": templates} if templates else {})


def _templates(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the form templates that these workflows refer to, without those that do not exist."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for name, version in sorted(named_templates(list(documents))):
        try:
            row = find_template(name, version)
        except NotFound:
            continue
        found[row.name, row.version] = {"name": row.name, "version": row.version, **row.document}
    return list(found.values())


def _newest_versions(names: Iterable[str]) -> list[WorkflowDefinition]:
    rows = WorkflowDefinition.objects.filter(name__in=list(names)).order_by("name", "version")
    return list({row.name: row for row in rows}.values())


def parse_bundle(given: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the definitions of a bundle, or of a list of workflows as Conductor's clients export them.

    Raises:
        Invalid: when the document is not a bundle, is empty, or has too many definitions.
    """
    if isinstance(given, list):
        given = {"workflows": given}
    if not isinstance(given, dict):
        raise Invalid('A bundle must be an object with the lists "workflows", "tasks" and "formTemplates".')
    if "workflows" not in given and "tasks" not in given and "name" in given:
        given = {"workflows": [given]} if isinstance(given.get("tasks"), list) else {"tasks": [given]}
    if isinstance(given.get("tasks"), list) and "name" in given:
        given = {"workflows": [given]}
    items = [(kind, each) for kind, part in PARTS for each in _parse_section(given, part)]
    if not items:
        raise Invalid("The bundle contains no definitions.")
    if len(items) > MAX_ITEMS:
        raise Invalid(f"A bundle can contain at most {MAX_ITEMS:,} definitions (got {len(items):,}).")
    return items


PARTS = ((TEMPLATE, "formTemplates"), (TASK, "tasks"), (WORKFLOW, "workflows"))
"""The lists of a bundle, in the order of their import."""


def _parse_section(given: dict[str, Any], part: str) -> list[dict[str, Any]]:
    found = given.get(part) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Invalid(f'"{part}" must be a list of definitions.')
    return found


def plan_import(given: Any) -> list[BundleItem]:
    """Return the result that the import of each definition would have. Nothing is saved."""
    items = parse_bundle(given)
    names = {kind: [str(each.get("name")) for one, each in items if one == kind] for kind in (WORKFLOW, TASK)}
    old = {(WORKFLOW, row.name): row for row in _newest_versions(names[WORKFLOW])}
    tasks = {(TASK, row.name): row for row in TaskDefinition.objects.filter(name__in=names[TASK])}
    return [
        _plan_template(document)
        if kind == TEMPLATE
        else _plan_item(kind, document, (old | tasks).get((kind, str(document.get("name")))))
        for kind, document in items
    ]


def _plan_template(document: dict[str, Any]) -> BundleItem:
    """Plan the import of a form template. Its document sets the version."""
    name, version = str(document.get("name") or ""), document_version(document)
    if validation_errors := form_templates.validate_template(document):
        return BundleItem(TEMPLATE, name, document, REFUSED, version, validation_errors=tuple(validation_errors))
    row = FormTemplate.objects.filter(name=name.replace("\0", ""), version=version).first()
    if row is None:
        return BundleItem(TEMPLATE, name, document, NEW, version)
    is_same = all(row.document.get(part) == document.get(part) for part in ("jsonSchema", "templateUI"))
    return BundleItem(TEMPLATE, name, document, SAME if is_same else CHANGED, version)


def _plan_item(kind: str, document: dict[str, Any], row: Any) -> BundleItem:
    name = str(document.get("name") or "")
    judge = definition_commands.validate_workflow if kind == WORKFLOW else definition_commands.validate_task
    version = None if kind == TASK else (row.version + 1 if row else int(document_version(document)))
    if validation_errors := judge(document):
        return BundleItem(kind, name, document, REFUSED, version, validation_errors=tuple(validation_errors))
    if row is None:
        return BundleItem(kind, name, document, NEW, version)
    found = tuple(semantic_changes(row.document, document))
    return BundleItem(kind, name, document, CHANGED if found else SAME, version, changes=found)


def document_version(document: dict[str, Any]) -> int:
    """Return the version that a document states, or 1."""
    version = document.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) and version > 0 else 1


def import_bundle(given: Any, how: str, by: str, reason: str = "") -> dict[str, list[str]]:
    """Import the new and changed definitions one after another, and return the kind and name of each by result.

    `how`: AS_NEW_VERSIONS saves changed workflows as new versions, AS_GIVEN under the versions that they state.
    """
    result: dict[str, list[str]] = {"kept": [], "unchanged": [], "refused": []}
    for item in plan_import(given):
        result[_import_item(item, how, by, reason)].append(f"{item.kind} {item.name}")
    return result


def _import_item(item: BundleItem, how: str, by: str, reason: str) -> str:
    if item.verdict in (SAME, REFUSED):
        return "unchanged" if item.verdict == SAME else "refused"
    try:
        if item.kind == TEMPLATE:
            form_templates.save_templates([{**item.document, "version": item.version}], by, reason=reason)
        elif item.kind == TASK:
            definition_commands.save_task(item.document, by, reason=reason)
        else:
            version = item.version if how == AS_NEW_VERSIONS else document_version(item.document)
            document = {**item.document, "version": version}
            definition_commands.save_workflow(document, by, overwrite=how == AS_GIVEN, reason=reason)
    except (ValidationFailed, RequestRefused):
        return "refused"
    return "kept"


def count_by_verdict(items: Iterable[BundleItem]) -> dict[str, int]:
    """Return the number of definitions per verdict."""
    counts = dict.fromkeys((NEW, CHANGED, SAME, REFUSED), 0)
    for item in items:
        counts[item.verdict] += 1
    return counts
