"""The plan of an import, and its execution.

Each object has a transaction of its own, so a second import continues an interrupted one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from django.db import DatabaseError

from conductor_app.core.errors import RequestRefused, ValidationFailed
from conductor_app.engine.definitions.definition_kinds import DefinitionKind, Document, PlanContext, PlannedObject

from ..transient_errors import describe_transient, discard_broken_connection, is_transient
from .planned_item import CompatibilityFinding, OnConflict, Outcome, PlannedItem, Verdict
from .spool import Spool

MAX_CHANGES = 30
MAX_ERRORS = 10
Examine = Callable[[DefinitionKind, PlannedObject], Sequence[CompatibilityFinding]]
"""Returns the findings of an object that is not invalid."""
PLANNED_OUTCOMES = {
    OnConflict.SKIP: Outcome.SKIPPED,
    OnConflict.FAIL: Outcome.SKIPPED,
    OnConflict.REPLACE: Outcome.REPLACED,
    OnConflict.NEW_VERSION: Outcome.NEW_VERSION,
}


@dataclass
class ImportPlan:
    """The objects of a source and what becomes of each. Their documents are in the spool."""

    context: PlanContext
    on_conflict: OnConflict
    spool: Spool
    items: list[PlannedItem] = field(default_factory=list)
    _seen: set[tuple[str, str, int | None]] = field(default_factory=set)

    def add(self, kind: DefinitionKind, position: int, examine: Examine = lambda kind, wanted: ()) -> None:
        """Compare the object at a position of the spool with what is here, and add it to the plan."""
        given: Document = {}
        try:
            given = self.spool.read(position)
            wanted = kind.parse(given, self.context)
            if (key := (kind.label, wanted.name, wanted.version)) in self._seen:
                raise ValidationFailed([])
            self._seen.add(key)
            item = self._compare(kind, wanted, position)
            item.findings = tuple(examine(kind, wanted))
        except RequestRefused as refused:
            item = _invalid_item(kind, given, position, describe_refusal(refused) or "The source lists it twice.")
        except (RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
            # A document that no check has foreseen must not end the import of the others.
            item = _invalid_item(kind, given, position, f"The document cannot be read: {error!r:.200}")
        self.items.append(item)

    def _compare(self, kind: DefinitionKind, wanted: PlannedObject, position: int) -> PlannedItem:
        current = kind.current(wanted)
        if current is None:
            return _item(kind, wanted, Verdict.NEW, Outcome.CREATED, position)
        here, there = kind.comparable(current), kind.comparable(wanted.document)
        changes = [] if here == there else kind.changes(here, there)
        if not changes or (self.on_conflict is OnConflict.NEW_VERSION and _has_version_like(kind, wanted, there)):
            return _item(kind, wanted, Verdict.UNCHANGED, Outcome.UNCHANGED, position)
        planned = PLANNED_OUTCOMES[self.on_conflict]
        if planned is Outcome.NEW_VERSION and not kind.has_versions:
            planned = Outcome.SKIPPED
        item = _item(kind, wanted, Verdict.DIFFERENT, planned, position)
        item.changes = tuple(changes[:MAX_CHANGES])
        return item

    @property
    def is_refused(self) -> bool:
        """Return True if a conflict forbids the import."""
        return self.on_conflict is OnConflict.FAIL and any(each.verdict is Verdict.DIFFERENT for each in self.items)

    @property
    def changes_something(self) -> bool:
        return any(each.changes_something for each in self.items)

    def execute(self, kinds: Sequence[DefinitionKind]) -> Iterator[PlannedItem]:
        """Save the objects one after another, and yield each with its outcome."""
        by_label = {kind.label: kind for kind in kinds}
        for item in self.items:
            item.outcome = item.planned
            if item.changes_something:
                self._save(by_label[item.kind], item)
            yield item

    def _save(self, kind: DefinitionKind, item: PlannedItem) -> None:
        try:
            wanted = kind.parse(self.spool.read(item.position), self.context)
            replaces, new_version = item.planned is Outcome.REPLACED, item.planned is Outcome.NEW_VERSION
            kind.save(wanted, self.context, replaces=replaces, new_version=new_version)
        except Exception as refused:
            if is_transient(refused):
                discard_broken_connection()
                item.outcome, item.reason = Outcome.FAILED, f"{describe_transient(refused)} Repeat the import."
            elif isinstance(refused, RequestRefused | DatabaseError | ValueError):
                item.outcome, item.reason = Outcome.FAILED, describe_refusal(refused)
            else:
                raise


def describe_refusal(refused: Exception) -> str:
    """Return why an object was refused, with the path of each error; empty if the exception says nothing."""
    if isinstance(refused, ValidationFailed):
        errors = [f"{each.path}: {each.message}" if each.path else each.message for each in refused.validation_errors]
        more = len(errors) - MAX_ERRORS
        return "; ".join(errors[:MAX_ERRORS]) + (f"; and {more} more errors" if more > 0 else "")
    return refused.message if isinstance(refused, RequestRefused) else " ".join(str(refused).split())


def _has_version_like(kind: DefinitionKind, wanted: PlannedObject, there: Document) -> bool:
    """Return True if any version here has the contents of the wanted one: a former import has saved it."""
    contents = _without_version(there)
    return any(_without_version(kind.comparable(each)) == contents for each in kind.other_versions(wanted.name))


def _without_version(document: Document) -> Document:
    return {name: value for name, value in document.items() if name != "version"}


def _item(
    kind: DefinitionKind, wanted: PlannedObject, verdict: Verdict, planned: Outcome, position: int
) -> PlannedItem:
    return PlannedItem(kind.label, wanted.name, wanted.version, verdict, planned, position)


def _invalid_item(kind: DefinitionKind, given: Document, position: int, reason: str) -> PlannedItem:
    name, version = given.get(kind.name_field), given.get("version") if kind.has_versions else None
    shown = name if isinstance(name, str) and name else "without a name"
    number = version if isinstance(version, int) else None
    return PlannedItem(kind.label, shown[:255], number, Verdict.INVALID, Outcome.SKIPPED, position, reason=reason)
