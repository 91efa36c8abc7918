"""Parsing of a folder of definitions, and documents of its plan, results and drift."""

from typing import Any

from ....core.document.checks.document_fields import FieldSpec, FieldTable
from ....core.document.checks.values import DocumentPosition, ListOf, read_boolean, read_mapping, read_text
from ....engine.definitions.source_apply import AppliedItem
from ....engine.definitions.source_drift import DriftItem, exported_document
from ....engine.definitions.source_kinds import NAME_BY_PLURAL
from ....engine.definitions.source_plan import InvalidDocument, SourceFolder, SourceItem, SourcePlan
from ..request_fields import read_request

Document = dict[str, Any]
SOURCE_FOLDER: FieldTable = (
    FieldSpec("label", read_text, ""),
    FieldSpec("commit", read_text, ""),
    FieldSpec("documents", ListOf(read_mapping), list),
    FieldSpec("prune", read_boolean, False),
    FieldSpec("overwrite", read_boolean, False),
    FieldSpec("takeOver", read_boolean, False),
    FieldSpec("planDigest", read_text, ""),
)
MAX_ERRORS = 100


def parse_source(document: Document) -> tuple[SourceFolder, str]:
    """Return the folder of a request, and the digest of the plan that the caller has confirmed."""
    fields = read_request(document, SOURCE_FOLDER, "definitions", _check_source)
    folder = SourceFolder(
        fields["label"].strip(),
        fields["documents"],
        fields["commit"].strip(),
        prunes=fields["prune"],
        overwrites=fields["overwrite"],
        takes_over=fields["takeOver"],
    )
    return folder, fields["planDigest"]


def _check_source(fields: Document, position: DocumentPosition) -> None:
    if None in fields["documents"]:
        position.at("documents").add_missing("documents must be a list of objects")


def plan_document(plan: SourcePlan) -> Document:
    """Return a plan. `isRefused`: it cannot be applied before its problems are solved."""
    return {
        "label": plan.source.label,
        "planDigest": plan.digest,
        "changesSomething": plan.changes_something,
        "isRefused": plan.is_refused,
        "items": [*map(_invalid_document, plan.invalid), *map(item_document, plan.items)],
    }


def item_document(item: SourceItem) -> Document:
    """Return one item of a plan. `document`: the position of its document in the request."""
    found: Document = {"kind": NAME_BY_PLURAL[item.kind.plural], "name": item.name, "action": str(item.action)}
    found |= {"version": item.version} if item.version else {}
    found |= {"document": item.position} if item.position >= 0 else {}
    found |= {"changes": list(item.changes)} if item.changes else {}
    found |= {"edits": list(item.edits)} if item.edits else {}
    found |= {"problem": item.problem} if item.problem else {}
    return found


def _invalid_document(invalid: InvalidDocument) -> Document:
    errors = [{"path": each.path, "message": each.message} for each in invalid.validation_errors[:MAX_ERRORS]]
    found: Document = {"name": invalid.name, "action": "invalid", "document": invalid.position}
    return found | {"problem": invalid.problem} | ({"validationErrors": errors} if errors else {})


def applied_document(applied: AppliedItem) -> Document:
    """Return the result of one item."""
    found = item_document(applied.item) | ({"version": applied.version} if applied.version else {})
    return found | ({"error": applied.error} if applied.error else {})


def drift_document(item: DriftItem) -> Document:
    """Return the state of one applied definition. `current`: what is here, if it was edited."""
    row = item.applied
    found: Document = {
        "kind": NAME_BY_PLURAL[item.kind.plural],
        "name": row.name,
        "label": row.label,
        "commit": row.commit,
        "appliedAt": row.applied_at,
        "appliedBy": row.applied_by,
        "state": "deleted" if item.is_deleted else "edited" if item.is_drifted else "unchanged",
    }
    found |= {"version": row.version} if row.version else {}
    found |= {"statedVersion": row.stated_version} if row.stated_version else {}
    found |= {"newerVersion": item.newer_version} if item.newer_version else {}
    if item.is_drifted:
        found |= {"changedBy": item.changed_by, "changedAt": item.changed_at, "edits": list(item.edits)}
        found |= {"current": exported_document(item)} if not item.is_deleted else {}
    return found
