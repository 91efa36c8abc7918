"""Apply the plan of a folder of definitions, find what was edited since (drift), and export and import bundles.

A plan is applied with one transaction per definition, which also remembers what was applied.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import DatabaseError
from django.db.models import Q

from ...access.authentication import acting_as, actor_of_user, current_actor
from ...access.commands.users import grant_to_current_actor
from ...access.models import AuditEntry
from ...access.permissions import FORM_TEMPLATE
from ...access.visibility import visible, visible_names
from ...core.definition import walk, worker_tasks
from ...core.document.differences import SemanticChange, semantic_changes
from ...core.errors import Conflict, Invalid, NotFound, RequestRefused, ValidationError, ValidationFailed
from ...core.primitives import JsonValue
from ...db.database import transaction
from ...db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ...human_tasks import form_templates as human_tasks_form_templates
from ...human_tasks.form_templates import find_template, named_templates
from ...human_tasks.models import FormTemplate
from ...utils import clock
from .. import commands as definition_commands
from .. import validation
from ..models import NEWEST, AppliedDefinition, TaskDefinition, WorkflowDefinition
from ..validation import named_workflows
from .kinds import DefinitionKind, StoredDefinition, load_stored
from .operator_kinds import source_kinds
from .plan import Action, SourceItem, SourcePlan, find_edits, may_read

SAVING = (Action.CREATE, Action.UPDATE, Action.NEW_VERSION)
MAX_ROWS = 2_000
KINDS = source_kinds(dict)
"""The kinds. Drift compares stored documents and parses none."""
FORMAT = "conductor-app definitions"
MAX_ITEMS = 2_000
WORKFLOW, TASK, TEMPLATE = "workflow", "task", "form template"
NEW, SAME, CHANGED, REFUSED = "new", "same", "changed", "refused"
AS_NEW_VERSIONS, AS_GIVEN = "new", "given"
PARTS = ((TEMPLATE, "formTemplates"), (TASK, "tasks"), (WORKFLOW, "workflows"))
"""The lists of a bundle, in the order of their import."""


@dataclass(frozen=True, slots=True)
class AppliedItem:
    """An item that was applied. `error`: why it was not. `version`: the one that was saved, or 0."""

    item: SourceItem
    version: int
    error: str = ""


def apply_plan(plan: SourcePlan, expected_digest: str = "") -> Iterator[AppliedItem]:
    """Apply a plan item by item. An item that is refused does not hold up the others; applying again continues.

    `expected_digest`: that of the plan which the caller has confirmed.

    Raises:
        Conflict: when the plan has a problem, or is not the confirmed one. Nothing is applied then.
    """
    if plan.is_refused:
        raise Conflict("The plan has problems, so nothing was applied.")
    if expected_digest and expected_digest != plan.digest:
        raise Conflict("Definitions have changed since the plan was made, so nothing was applied. Plan again.")
    return _apply_items(plan)


def _apply_items(plan: SourcePlan) -> Iterator[AppliedItem]:
    actor = current_actor()
    for item in plan.items:
        if not item.changes_something:
            continue
        # An item may use a definition that an earlier one has created, to which its creator has got the accesses.
        user_id = actor.user_id if actor else None
        with nullcontext() if user_id is None else acting_as(partial(actor_of_user, user_id)):
            yield _apply_item(plan, item)


def _apply_item(plan: SourcePlan, item: SourceItem) -> AppliedItem:
    try:
        with transaction.atomic():
            _require_unchanged(item)
            if item.action is Action.DELETE:
                _delete(plan, item)
                return AppliedItem(item, item.version)
            if item.action is Action.DISCARD:
                if item.applied is not None:
                    item.applied.delete()
                return AppliedItem(item, item.version)
            _save(plan, item)
            return AppliedItem(item, _remember(plan, item))
    except Exception as refused:
        return AppliedItem(item, item.version, _refusal_text(refused))


def _refusal_text(refused: Exception) -> str:
    """Return why an item was not applied. Other exceptions are raised again."""
    if is_transient(refused):
        discard_broken_connection()
        return f"{describe_transient(refused)} Apply the definitions again."
    if isinstance(refused, RequestRefused):
        return refused.message
    if isinstance(refused, DatabaseError | ValueError):
        return "The database refuses the definition."
    raise refused


def _require_unchanged(item: SourceItem) -> None:
    """Lock a definition, and check that it is still as the plan has found it."""
    item.kind.lock(item.name)
    newest = item.name, NEWEST
    if _load(item) != item.stored or (item.is_new and load_stored(item.kind, [newest])):
        raise Conflict("It was changed while the plan was applied. Plan again.")


def _load(item: SourceItem) -> StoredDefinition | None:
    key = item.name, item.stated_version
    return load_stored(item.kind, [key]).get(key)


def _save(plan: SourcePlan, item: SourceItem) -> None:
    if item.action not in SAVING or item.wanted is None:
        return
    item.kind.save(
        item.wanted, plan.context, replaces=item.action is Action.UPDATE, new_version=item.action is Action.NEW_VERSION
    )
    if item.is_new and item.kind.target_type:
        grant_to_current_actor([(item.kind.target_type, item.name)])


def _remember(plan: SourcePlan, item: SourceItem) -> int:
    """Record what was applied, and return the version that was saved."""
    stored, source = _load(item), plan.source
    if stored is None:
        raise Conflict("It was deleted while the plan was applied. Plan again.")
    rows = AppliedDefinition.objects.filter(kind=item.kind.plural, name=item.name)
    if item.stated_version == NEWEST:
        # The document stated a version before: the source keeps the versions that it has saved.
        former = [version for row in rows.filter(label=source.label) for version in row.versions]
        rows.exclude(stated_version=NEWEST).delete()
    else:
        former = []
        rows.filter(stated_version=NEWEST).delete()
    versions = sorted({*former, stored.version}) if item.kind.has_versions else []
    AppliedDefinition.objects.update_or_create(
        kind=item.kind.plural,
        name=item.name,
        stated_version=item.stated_version,
        defaults={
            "label": source.label,
            "version": stored.version,
            "versions": versions,
            "document": stored.document,
            "commit": source.commit,
            "applied_at": clock.now(),
            "applied_by": plan.context.by[:255],
        },
    )
    return stored.version


def _delete(plan: SourcePlan, item: SourceItem) -> None:
    """Delete what the source has applied. Versions that others have saved stay."""
    if item.applied is None:
        return
    for version in item.applied.versions if item.kind.has_versions else [None]:
        if version is None or load_stored(item.kind, [(item.name, version)]):
            item.kind.delete(item.name, version, plan.context)
    item.applied.delete()


@dataclass(frozen=True, slots=True)
class DriftItem:
    """An applied definition. `document`: what is here, None if it was deleted. `edits`: sentences.

    `changed_by`, `changed_at`: of the last edit or of the deletion. `newer_version`: one that was saved here; or 0.
    """

    kind: DefinitionKind
    applied: AppliedDefinition
    document: dict[str, Any] | None
    edits: Sequence[str]
    changed_by: str = ""
    changed_at: int = 0
    newer_version: int = 0

    @property
    def is_drifted(self) -> bool:
        return self.document is None or bool(self.edits)

    @property
    def is_deleted(self) -> bool:
        return self.document is None


def find_drift(label: str = "") -> list[DriftItem]:
    """Return the applied definitions that the current actor may read, compared with what is here.

    `label`: of one source; empty for all.
    """
    rows = AppliedDefinition.objects.order_by("label", "kind", "name", "stated_version")
    by_kind: dict[str, list[AppliedDefinition]] = defaultdict(list)
    for row in (rows.filter(label=label) if label else rows)[:MAX_ROWS]:
        by_kind[row.kind].append(row)
    found = [item for kind in KINDS if by_kind[kind.plural] for item in _drift_of_kind(kind, by_kind[kind.plural])]
    return _with_deletions(sorted(found, key=lambda item: (item.applied.label, item.kind.plural, item.applied.name)))


def find_drift_of(pk: int) -> DriftItem | None:
    """Return one applied definition; None if there is none that the current actor may read."""
    row = AppliedDefinition.objects.filter(pk=min(pk, 2**62)).first()
    kind = next((kind for kind in KINDS if row and kind.plural == row.kind), None)
    found = _drift_of_kind(kind, [row]) if row and kind else []
    return found[0] if found else None


def _drift_of_kind(kind: DefinitionKind, rows: Sequence[AppliedDefinition]) -> list[DriftItem]:
    rows = [row for row in rows if may_read(kind, row.name)]
    stored = load_stored(kind, {(row.name, row.stated_version) for row in rows})
    return [_compare(kind, row, stored.get((row.name, row.stated_version))) for row in rows]


def _compare(kind: DefinitionKind, row: AppliedDefinition, stored: StoredDefinition | None) -> DriftItem:
    if stored is None:
        return DriftItem(kind, row, None, ())
    newer = stored.version if row.stated_version == NEWEST and stored.version > row.version else 0
    edits = find_edits(kind, row, stored)
    return DriftItem(kind, row, stored.document, edits, stored.changed_by, stored.changed_at, newer)


def _with_deletions(items: list[DriftItem]) -> list[DriftItem]:
    """Return the items with who has deleted those that are missing, from the audit log."""
    missing = {_audit_key(item): item for item in items if item.is_deleted}
    if not missing:
        return items
    of_objects = Q(pk__in=[])
    for type in {type for type, _ in missing}:
        of_objects |= Q(object_type=type, object_id__in=[id for each, id in missing if each == type])
    entries = AuditEntry.objects.filter(of_objects, action="delete").order_by("at")
    deleted = {(entry.object_type, entry.object_id): entry for entry in entries}
    result = []
    for item in items:
        entry = deleted.get(_audit_key(item)) if item.is_deleted else None
        result.append(
            DriftItem(item.kind, item.applied, None, (), entry.actor, entry.at) if entry is not None else item
        )
    return result


def _audit_key(item: DriftItem) -> tuple[str, str]:
    version = f":{item.applied.version}" if item.kind.has_versions else ""
    return item.kind.audit_type, f"{item.applied.name}{version}"


def exported_document(item: DriftItem) -> dict[str, Any] | None:
    """Return what is here as a document for the folder: without fields that the server fills in; None if deleted.

    A document that follows the newest version has no version.
    """
    if item.document is None:
        return None
    left_out = {"createTime", "updateTime", "createdBy", "updatedBy", "ownerApp"}
    if item.kind.has_versions and item.applied.stated_version == NEWEST:
        left_out.add("version")
    return {name: value for name, value in item.document.items() if name not in left_out}


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

    It has only those that the current actor may read. For one who may read some only, `notIncluded` names the tasks
    without a definition in it.

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
    every_row = TaskDefinition.objects.filter(name__in=tasks).order_by("name")
    rows = visible(every_row)
    given: dict[str, Any] = {"format": FORMAT, "workflows": list(workflows.values())}
    given["tasks"] = [row.document for row in rows]
    used = set[str]().union(*map(worker_tasks, workflows.values()))
    if rows is not every_row and (left_out := used - {row.name for row in rows}):
        given["notIncluded"] = {"tasks": sorted(left_out)}
    templates = _templates(workflows.values()) if with_templates else []
    return given | ({"formTemplates": templates} if templates else {})


def _templates(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the readable form templates that these workflows refer to, without those that do not exist."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for name, version in sorted(named_templates(list(documents))):
        try:
            row = find_template(name, version)
        except NotFound:
            continue
        if visible_names(FORM_TEMPLATE, [row.name]):
            found[row.name, row.version] = {"name": row.name, "version": row.version, **row.document}
    return list(found.values())


def _newest_versions(names: Iterable[str]) -> list[WorkflowDefinition]:
    rows = visible(WorkflowDefinition.objects.filter(name__in=list(names)).order_by("name", "version"))
    return list({row.name: row for row in rows}.values())


def parse_bundle(given: JsonValue) -> list[tuple[str, dict[str, Any]]]:
    """Return the definitions of a bundle, or of a list of workflows as Conductor's clients export them."""
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


def _parse_section(given: dict[str, Any], part: str) -> list[dict[str, Any]]:
    found = given.get(part) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Invalid(f'"{part}" must be a list of definitions.')
    return found


def plan_import(given: JsonValue) -> list[BundleItem]:
    """Return the result that the import of each definition would have. Nothing is saved."""
    items = parse_bundle(given)
    names = {kind: [str(each.get("name")) for one, each in items if one == kind] for kind in (WORKFLOW, TASK)}
    old = {(WORKFLOW, row.name): row for row in _newest_versions(names[WORKFLOW])}
    tasks = {(TASK, row.name): row for row in visible(TaskDefinition.objects.filter(name__in=names[TASK]))}
    return [
        _plan_template(document)
        if kind == TEMPLATE
        else _plan_item(kind, document, (old | tasks).get((kind, str(document.get("name")))))
        for kind, document in items
    ]


def _plan_template(document: dict[str, Any]) -> BundleItem:
    """Plan the import of a form template. Its document sets the version."""
    name, version = str(document.get("name") or ""), document_version(document)
    if validation_errors := human_tasks_form_templates.validate_template(document):
        return BundleItem(TEMPLATE, name, document, REFUSED, version, validation_errors=tuple(validation_errors))
    row = FormTemplate.objects.filter(name=name.replace("\0", ""), version=version).first()
    if row is None:
        return BundleItem(TEMPLATE, name, document, NEW, version)
    is_same = all(row.document.get(part) == document.get(part) for part in ("jsonSchema", "templateUI"))
    return BundleItem(TEMPLATE, name, document, SAME if is_same else CHANGED, version)


def _plan_item(kind: str, document: dict[str, Any], row: Any) -> BundleItem:
    name = str(document.get("name") or "")
    judge = validation.validate_workflow if kind == WORKFLOW else validation.validate_task
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


def import_bundle(given: JsonValue, how: str, by: str, reason: str = "") -> dict[str, list[str]]:
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
            human_tasks_form_templates.save_templates([{**item.document, "version": item.version}], by, reason=reason)
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
