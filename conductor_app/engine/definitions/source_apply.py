"""Apply the plan of a folder of definitions: one transaction per definition, which also remembers what was applied."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from django.db import DatabaseError, transaction

from ... import clock
from ...access.current_actor import acting_as, actor_of_user, current_actor
from ...core.errors import Conflict, RequestRefused
from ...models import AppliedDefinition
from ...models.applied_definitions import NEWEST
from ...transient_errors import describe_transient, discard_broken_connection, is_transient
from ..access.grants import grant_to_current_actor
from .source_plan import Action, SourceItem, SourcePlan
from .stored_definitions import StoredDefinition, load_stored

SAVING = (Action.CREATE, Action.UPDATE, Action.NEW_VERSION)


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
    """Lock a definition, and check that it is still as the plan has found it.

    Raises:
        Conflict: when it was changed since.
    """
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
        item.wanted,
        plan.context,
        replaces=item.action is Action.UPDATE,
        new_version=item.action is Action.NEW_VERSION,
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
