"""The plan of an import, and its execution. Documents are parsed and saved by the functions that the API uses.

Each object has a transaction of its own, so a second import continues an interrupted one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from django.db import DatabaseError

from ...access import grants as access_tags
from ...access.commands import secrets
from ...access.permissions import EVENT_HANDLER, TASK_DEF, WORKFLOW_DEF
from ...core.document.fields import DocumentPosition
from ...core.errors import Invalid, RequestRefused, ValidationFailed
from ...core.primitives import JsonValue
from ...db.transient_errors import describe_transient, discard_broken_connection, is_transient
from ...definitions import commands as tags
from ...definitions.sources.kinds import (
    DefinitionKind,
    Document,
    FormTemplateKind,
    HandlerKind,
    PlanContext,
    PlannedObject,
    ScheduleKind,
    SchemaKind,
    TaskKind,
    WorkflowKind,
    require_none,
)
from ...schedules.serializers import parse_schedule
from ...utils.json_values import MAX_DEPTH, is_deeper
from ...web.api.documents import parse_tags


@dataclass(frozen=True, slots=True)
class CompatibilityFinding:
    """A difference between the source and this server. `path`: the step or field.

    `is_blocking`: it cannot work here before something is done.
    """

    path: str
    text: str
    is_blocking: bool = False

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        return f"{'!' if self.is_blocking else '-'} {place}{self.text}"


class Verdict(StrEnum):
    """How a definition of the source compares with what is here."""

    NEW = "new"
    UNCHANGED = "unchanged"
    DIFFERENT = "different"
    INVALID = "invalid"


class OnConflict(StrEnum):
    """What is done with a definition that differs from the one of the same name that is here."""

    SKIP = "skip"
    REPLACE = "replace"
    NEW_VERSION = "new-version"
    FAIL = "fail"


class Outcome(StrEnum):
    """What the import has done with a definition."""

    CREATED = "created"
    REPLACED = "replaced"
    NEW_VERSION = "saved as a new version"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNCHANGED = "unchanged"


@dataclass(slots=True)
class PlannedItem:
    """One definition. `changes`: what would change here. `reason`: why it is invalid, or could not be saved.

    `planned`: the outcome that the plan announces. `wanted`: None if it is invalid.
    """

    kind: str
    name: str
    version: int | None
    verdict: Verdict
    planned: Outcome
    wanted: PlannedObject | None = None
    changes: tuple[str, ...] = ()
    reason: str = ""
    findings: tuple[CompatibilityFinding, ...] = ()
    outcome: Outcome | None = None

    @property
    def title(self) -> str:
        return self.name if self.version is None else f"{self.name}, version {self.version}"

    @property
    def changes_something(self) -> bool:
        return self.planned in (Outcome.CREATED, Outcome.REPLACED, Outcome.NEW_VERSION)

    @property
    def is_left_out(self) -> bool:
        """Return True if this server does not have what the source has, also after the import."""
        return (self.outcome or self.planned) in (Outcome.SKIPPED, Outcome.FAILED)


class VariableKind(DefinitionKind):
    label, plural = "environment variable", "variables"

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        name, value = given.get("name"), given.get("value")
        if not isinstance(name, str) or not isinstance(value, str):
            raise Invalid("An environment variable must have a name and a value, which are texts.")
        secrets.check_name_and_value(name, value)
        return PlannedObject(name, {"value": value.replace("\0", "")})

    def current(self, wanted: PlannedObject) -> Document | None:
        values = secrets.list_variables()
        return {"value": values[wanted.name]} if wanted.name in values else None

    def changes(self, current: Document, wanted: Document) -> list[str]:
        """Return that the value differs, without the value."""
        return ["value differs"]

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        secrets.put_variable(wanted.name, wanted.document["value"], context.by, context.reason)


TAGGED = {"workflow": WORKFLOW_DEF, "task": TASK_DEF, "event handler": EVENT_HANDLER}


class TagKind(DefinitionKind):
    """The tags of one definition. Missing tags are added; others stay."""

    label, plural = "tags", "tags"

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        position = DocumentPosition("tags")
        found = parse_tags(given.get("tags"), position)
        require_none(position.validation_errors)
        wanted = [tag for tag in found if tag["type"] == access_tags.METADATA]
        return PlannedObject(f"{given['of']} {given['name']}", {**given, "tags": wanted})

    def current(self, wanted: PlannedObject) -> Document | None:
        document = wanted.document
        present = access_tags.metadata_tags(TAGGED[document["of"]], document["name"])
        missing = [tag for tag in document["tags"] if tag not in present]
        return None if missing else document

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        document = wanted.document
        tags.add_tags(TAGGED[document["of"]], document["name"], document["tags"], context.by)


KINDS: tuple[DefinitionKind, ...] = (
    SchemaKind(), TaskKind(), FormTemplateKind(), WorkflowKind(), VariableKind(), HandlerKind(),
    ScheduleKind(parse_schedule),
    TagKind(),
)  # fmt: skip
"""All kinds, in the order of the import: what a definition uses comes before it."""


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
    """The objects of a source and what becomes of each."""

    context: PlanContext
    on_conflict: OnConflict
    items: list[PlannedItem] = field(default_factory=list)
    _seen: set[tuple[str, str, int | None]] = field(default_factory=set)

    def add(self, kind: DefinitionKind, given: JsonValue, examine: Examine = lambda kind, wanted: ()) -> None:
        """Compare an object with what is here, and add it to the plan."""
        try:
            if not isinstance(given, dict):
                raise Invalid(f"The document must be an object (got {given!r:.40}).")
            if is_deeper(given, MAX_DEPTH):
                raise Invalid(f"The document is nested more than {MAX_DEPTH} levels deep.")
            wanted = kind.parse(given, self.context)
            if (key := (kind.label, wanted.name, wanted.version)) in self._seen:
                raise ValidationFailed([])
            self._seen.add(key)
            item = self._compare(kind, wanted)
            item.findings = tuple(examine(kind, wanted))
        except RequestRefused as refused:
            item = _invalid_item(kind, given, describe_refusal(refused) or "The source lists it twice.")
        except (RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
            # A document that no check has foreseen must not end the import of the others.
            item = _invalid_item(kind, given, f"The document cannot be read: {error!r:.200}")
        self.items.append(item)

    def _compare(self, kind: DefinitionKind, wanted: PlannedObject) -> PlannedItem:
        current = kind.current(wanted)
        if current is None:
            return _item(kind, wanted, Verdict.NEW, Outcome.CREATED)
        here, there = kind.comparable(current), kind.comparable(wanted.document)
        changes = [] if here == there else kind.changes(here, there)
        if not changes or (self.on_conflict is OnConflict.NEW_VERSION and _has_version_like(kind, wanted, there)):
            return _item(kind, wanted, Verdict.UNCHANGED, Outcome.UNCHANGED)
        planned = PLANNED_OUTCOMES[self.on_conflict]
        if planned is Outcome.NEW_VERSION and not kind.has_versions:
            planned = Outcome.SKIPPED
        item = _item(kind, wanted, Verdict.DIFFERENT, planned)
        item.changes = tuple(changes[:MAX_CHANGES])
        return item

    @property
    def is_refused(self) -> bool:
        """Return True if a conflict forbids the import."""
        return self.on_conflict is OnConflict.FAIL and any(each.verdict is Verdict.DIFFERENT for each in self.items)

    @property
    def changes_something(self) -> bool:
        return any(each.changes_something for each in self.items)

    def execute(self) -> Iterator[PlannedItem]:
        """Save the objects one after another, and yield each with its outcome."""
        by_label = {kind.label: kind for kind in KINDS}
        for item in self.items:
            item.outcome = item.planned
            if item.wanted is not None and item.changes_something:
                self._save(by_label[item.kind], item, item.wanted)
            yield item

    def _save(self, kind: DefinitionKind, item: PlannedItem, wanted: PlannedObject) -> None:
        try:
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


def _item(kind: DefinitionKind, wanted: PlannedObject, verdict: Verdict, planned: Outcome) -> PlannedItem:
    return PlannedItem(kind.label, wanted.name, wanted.version, verdict, planned, wanted)


def _invalid_item(kind: DefinitionKind, given: JsonValue, reason: str) -> PlannedItem:
    document = given if isinstance(given, dict) else {}
    name, version = document.get(kind.name_field), document.get("version") if kind.has_versions else None
    shown = name if isinstance(name, str) and name else "without a name"
    number = version if isinstance(version, int) else None
    return PlannedItem(kind.label, shown[:255], number, Verdict.INVALID, Outcome.SKIPPED, reason=reason)
