"""The plan of a folder of definitions: what applying it would create, change and delete, and what prevents it.

A definition belongs to the source that applied it first. A plan changes no definition of another source, none that was
edited here since, and deletes none that its own source has not applied, unless the caller requests it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from ...access.authentication import current_actor
from ...access.grants import require_starts
from ...access.permissions import CREATE, DELETE, READ, UPDATE, WORKFLOW_DEF
from ...core.errors import Forbidden, Invalid, RequestRefused, ValidationError, ValidationFailed
from ...db.fields import dumps
from ..models import MAX_COMMIT_LENGTH, MAX_LABEL_LENGTH, NEWEST, AppliedDefinition
from .kinds import DefinitionKind, PlanContext, PlannedObject, StoredDefinition, StoredKey, differences, load_stored
from .operator_kinds import find_kind

MAX_DOCUMENTS = 1_000
MAX_CHANGES = 50
Document = dict[str, Any]


class Action(StrEnum):
    """What applying a plan does with a definition.

    ADOPT: it is as wanted, and is recorded as applied. DISCARD: it is neither here nor in the folder, and the record is
    deleted. KEEP: the folder no longer has it, and the plan does not prune.
    """

    CREATE = "create"
    UPDATE = "update"
    NEW_VERSION = "new version"
    ADOPT = "adopt"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    DISCARD = "discard"
    KEEP = "keep"


NO_CHANGES = (Action.UNCHANGED, Action.KEEP)
ACCESS_BY_ACTION = {
    Action.CREATE: CREATE,
    Action.UPDATE: UPDATE,
    Action.NEW_VERSION: UPDATE,
    Action.ADOPT: UPDATE,
    Action.DELETE: DELETE,
    Action.DISCARD: DELETE,
}


@dataclass(frozen=True, slots=True)
class SourceFolder:
    """The documents of a source, and what may be done. `label`: its name. `commit`: that of the documents.

    `prunes`: delete what the source has applied and no longer contains. `overwrites`: also what was edited here since.
    `takes_over`: change definitions of other sources.
    """

    label: str
    documents: Sequence[Document]
    commit: str = ""
    prunes: bool = False
    overwrites: bool = False
    takes_over: bool = False


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One definition of a plan.

    `position`: of its document in the folder; -1 for one that the folder no longer has. `problem`: why the plan cannot
    be applied; `validation_errors`: its details. `stored`: what is here. `is_new`: no version of it exists.
    """

    kind: DefinitionKind
    name: str
    version: int
    stated_version: int
    action: Action
    position: int = -1
    wanted: PlannedObject | None = None
    stored: StoredDefinition | None = None
    applied: AppliedDefinition | None = None
    is_new: bool = False
    changes: Sequence[str] = ()
    edits: Sequence[str] = ()
    problem: str = ""
    validation_errors: Sequence[ValidationError] = ()

    @property
    def changes_something(self) -> bool:
        return self.action not in NO_CHANGES


@dataclass(frozen=True, slots=True)
class InvalidDocument:
    """A document that is not a definition of a known kind. `position`: in the folder."""

    position: int
    problem: str
    name: str = ""
    validation_errors: Sequence[ValidationError] = ()


@dataclass
class SourcePlan:
    """The items of a plan in the order of their execution, and the documents that are invalid."""

    source: SourceFolder
    context: PlanContext
    items: list[SourceItem] = field(default_factory=list)
    invalid: list[InvalidDocument] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        """Return True if a problem prevents the plan from being applied."""
        return bool(self.invalid) or any(item.problem for item in self.items)

    @property
    def changes_something(self) -> bool:
        return any(item.changes_something for item in self.items)

    @property
    def digest(self) -> str:
        """Return a digest that another plan has only if it does the same with the same definitions."""
        facts = [
            [
                item.kind.plural,
                item.name,
                item.version,
                item.action,
                item.problem,
                item.wanted.document if item.wanted else None,
                item.stored.document if item.stored else None,
            ]
            for item in self.items
        ]
        return hashlib.sha256((dumps(facts) or "").encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document of the folder with its kind. `stated_version`: NEWEST if it states none."""

    kind: DefinitionKind
    wanted: PlannedObject
    stated_version: int
    position: int

    @property
    def key(self) -> StoredKey:
        return self.wanted.name, self.stated_version


def plan_source(source: SourceFolder, kinds: Sequence[DefinitionKind], by: str) -> SourcePlan:
    """Return the plan of a source. Nothing is saved.

    `kinds`: in the order in which they are applied.

    Raises:
        Invalid: when the source has no name, has too many documents, or would prune everything.
        Forbidden: when it would prune what the current actor may not read.
    """
    _check_source(source)
    reason = f"Applied from {source.label}" + (f", commit {source.commit}" if source.commit else "")
    plan = SourcePlan(source, PlanContext(by, reason, activates=True))
    by_kind: dict[str, list[ParsedDocument]] = defaultdict(list)
    for parsed in _parse_documents(plan, kinds):
        by_kind[parsed.kind.plural].append(parsed)
    leftovers: list[SourceItem] = []
    for kind in kinds:
        plan.items += _plan_kind(plan, kind, by_kind[kind.plural])
        leftovers = [*_plan_leftovers(plan, kind, by_kind[kind.plural]), *leftovers]
    plan.items += leftovers
    planned = {(item.kind.plural, item.name) for item in plan.items}
    plan.items = [_check_item(item, _created_workflows(plan), planned) for item in plan.items]
    return plan


def _check_source(source: SourceFolder) -> None:
    if not source.label.strip() or len(source.label) > MAX_LABEL_LENGTH:
        raise Invalid(f"The label must be the name of the source, with at most {MAX_LABEL_LENGTH} characters.")
    if len(source.commit) > MAX_COMMIT_LENGTH:
        raise Invalid(f"The commit can have at most {MAX_COMMIT_LENGTH} characters.")
    if len(source.documents) > MAX_DOCUMENTS:
        raise Invalid(
            f"A folder can contain at most {MAX_DOCUMENTS:,} definitions (got {len(source.documents):,}). Split it, "
            "with a label for each part."
        )
    if source.prunes and not source.documents:
        raise Invalid(f"The folder contains no definitions. Pruning would delete all definitions of {source.label}.")


def _parse_documents(plan: SourcePlan, kinds: Sequence[DefinitionKind]) -> Iterator[ParsedDocument]:
    """Yield the valid documents, and add the others to the plan."""
    given = list(enumerate(plan.source.documents))
    seen: dict[tuple[str, str], set[int]] = defaultdict(set)
    # Workflows are checked against the input templates of the task definitions in the same folder.
    for _position, document in given:
        template = document.get("inputTemplate")
        if isinstance(document.get("name"), str) and "tasks" not in document and isinstance(template, dict):
            plan.context.input_templates[document["name"]] = template
    for position, document in given:
        name = document.get("name")
        shown = name[:255] if isinstance(name, str) else ""
        try:
            yield _parse_document(plan, document, kinds, seen, position)
        except ValidationFailed as refused:
            plan.invalid.append(InvalidDocument(position, refused.message, shown, refused.validation_errors))
        except RequestRefused as refused:
            plan.invalid.append(InvalidDocument(position, refused.message, shown))
        except (RecursionError, ValueError, TypeError, KeyError, AttributeError):
            # A document that no check has foreseen must not hide the findings in the others.
            plan.invalid.append(InvalidDocument(position, "The document does not have the form of its kind.", shown))


def _parse_document(
    plan: SourcePlan,
    document: Document,
    kinds: Sequence[DefinitionKind],
    seen: dict[tuple[str, str], set[int]],
    position: int,
) -> ParsedDocument:
    kind, fields = find_kind(document, kinds)
    wanted = kind.parse(fields, plan.context)
    stated = (wanted.version or 1) if kind.has_versions and fields.get("version") is not None else NEWEST
    others = seen[kind.plural, wanted.name]
    if stated in others:
        raise Invalid(f"The folder contains the {kind.label} {wanted.name} twice.")
    if others and NEWEST in (stated, *others):
        raise Invalid(f"The folder contains the {kind.label} {wanted.name} with and without a version.")
    others.add(stated)
    return ParsedDocument(kind, wanted, stated, position)


def _plan_kind(plan: SourcePlan, kind: DefinitionKind, documents: Sequence[ParsedDocument]) -> Iterator[SourceItem]:
    stored = load_stored(kind, {key for each in documents for key in (each.key, (each.wanted.name, NEWEST))})
    applied = _applied_by_name(kind, {each.wanted.name for each in documents})
    for each in documents:
        yield _plan_document(plan.source, each, stored, applied.get(each.wanted.name, []))


def _applied_by_name(kind: DefinitionKind, names: set[str]) -> dict[str, list[AppliedDefinition]]:
    found: dict[str, list[AppliedDefinition]] = defaultdict(list)
    for row in AppliedDefinition.objects.filter(kind=kind.plural, name__in=names):
        found[row.name].append(row)
    return found


def _plan_document(
    source: SourceFolder,
    each: ParsedDocument,
    stored: Mapping[StoredKey, StoredDefinition],
    applied: Sequence[AppliedDefinition],
) -> SourceItem:
    kind, wanted = each.kind, each.wanted
    here, newest = stored.get(each.key), stored.get((wanted.name, NEWEST))
    own = next((row for row in applied if row.stated_version == each.stated_version), None)
    item = SourceItem(
        kind, wanted.name, _version(each, newest), each.stated_version, Action.CREATE, each.position, wanted, here, own,
        is_new=newest is None,
    )  # fmt: skip
    if here is not None:
        changes = differences(kind, here.document, wanted.document)[:MAX_CHANGES]
        item = replace(item, changes=changes, action=_action(source, each, here, own), version=here.version)
        if item.action is Action.NEW_VERSION:
            item = replace(item, version=here.version + 1)
    owners = sorted({row.label for row in applied} - {source.label})
    if owners and not source.takes_over:
        text = f"It belongs to the source {owners[0]}. Remove it from one of the two, or take it over."
        return replace(item, problem=text)
    if own is not None and item.changes_something:
        item = _check_edits(source, item)
    return item


def _version(each: ParsedDocument, newest: StoredDefinition | None) -> int:
    if not each.kind.has_versions:
        return 0
    if each.stated_version != NEWEST:
        return each.stated_version
    return newest.version if newest else each.wanted.version or 1


def _action(
    source: SourceFolder, each: ParsedDocument, here: StoredDefinition, own: AppliedDefinition | None
) -> Action:
    kind = each.kind
    if differences(kind, here.document, each.wanted.document):
        return Action.NEW_VERSION if kind.has_versions and each.stated_version == NEWEST else Action.UPDATE
    is_recorded = own is not None and own.label == source.label and own.version == here.version
    return Action.UNCHANGED if is_recorded and own and not find_edits(kind, own, here) else Action.ADOPT


def find_edits(kind: DefinitionKind, applied: AppliedDefinition, stored: StoredDefinition) -> list[str]:
    """Return how a definition differs from what was applied, as sentences; empty if it was not edited since."""
    return differences(kind, applied.document, stored.document)[:MAX_CHANGES]


def _check_edits(source: SourceFolder, item: SourceItem) -> SourceItem:
    """Return the item with the edits that were made here since it was applied, which it would undo."""
    if item.applied is None or item.stored is None or not item.changes:
        return item
    edits = find_edits(item.kind, item.applied, item.stored)
    if not edits or source.overwrites:
        return replace(item, edits=edits)
    text = f"{item.stored.changed_by or 'An operator'} has edited it on the server since it was applied. "
    return replace(item, edits=edits, problem=f"{text}Export the edits into the folder, or overwrite them.")


def _plan_leftovers(plan: SourcePlan, kind: DefinitionKind, documents: Sequence[ParsedDocument]) -> list[SourceItem]:
    """Return what the source has applied and no longer contains."""
    keys, names = {each.key for each in documents}, {each.wanted.name for each in documents}
    follows_newest = {name for name, version in keys if version == NEWEST}
    rows = [
        row
        for row in AppliedDefinition.objects.filter(label=plan.source.label, kind=kind.plural).order_by("name")
        if (row.name, row.stated_version) not in keys
        and row.name not in (names if row.stated_version == NEWEST else follows_newest)
    ]
    readable = [row for row in rows if may_read(kind, row.name)]
    if plan.source.prunes and len(readable) < len(rows):
        raise Forbidden(
            f"Pruning {plan.source.label} would delete definitions that you may not read. Prune with an account that "
            "may read all of them, or choose a label of your own.",
            code="FORBIDDEN",
        )
    rows = readable
    stored = load_stored(kind, {(row.name, row.stated_version) for row in rows})
    return [_plan_leftover(plan.source, kind, row, stored.get((row.name, row.stated_version))) for row in rows]


def _plan_leftover(
    source: SourceFolder, kind: DefinitionKind, row: AppliedDefinition, stored: StoredDefinition | None
) -> SourceItem:
    item = SourceItem(kind, row.name, row.version, row.stated_version, Action.KEEP, stored=stored, applied=row)
    if not source.prunes:
        return item
    if stored is None:
        return replace(item, action=Action.DISCARD)
    item = replace(item, action=Action.DELETE)
    if edits := find_edits(kind, row, stored):
        text = f"{stored.changed_by or 'An operator'} has edited it on the server since it was applied. "
        problem = "" if source.overwrites else f"{text}Export the edits, or overwrite them to delete it."
        return replace(item, edits=edits, problem=problem)
    return item


def _created_workflows(plan: SourcePlan) -> set[str]:
    return {item.name for item in plan.items if item.kind.target_type == WORKFLOW_DEF and item.is_new}


def _check_item(item: SourceItem, created: Iterable[str], planned: Collection[tuple[str, str]]) -> SourceItem:
    """Return the item with its problem if the current actor lacks a right, and without what the actor may not read.

    `planned`: the kinds and names of all items.
    """
    if not may_read(item.kind, item.name):
        if not may_write(item.kind, item.name):
            return _without_facts(item)
        item = replace(item, changes=(), edits=())
    if problem := refusal_of(item, created):
        return replace(item, problem=problem)
    if item.wanted is not None and (problem := item.kind.find_problem(item.wanted, planned)):
        return replace(item, problem=problem)
    return item


def _without_facts(item: SourceItem) -> SourceItem:
    """Return the item for an actor without any right to its name: the same whether the name exists or not."""
    version = max(item.stated_version, 1) if item.kind.has_versions else 0
    return SourceItem(
        item.kind, item.name, version, item.stated_version, Action.CREATE, item.position, item.wanted, is_new=True,
        problem=refusal_of(replace(item, action=Action.CREATE, is_new=True)),
    )  # fmt: skip


def may_write(kind: DefinitionKind, name: str) -> bool:
    """Return True if the current actor may create or change a definition of this name."""
    actor = current_actor()
    return actor is None or any(kind.refuse(actor, access, name) is None for access in (CREATE, UPDATE))


def may_read(kind: DefinitionKind, name: str) -> bool:
    """Return True if the current actor may see the contents of a definition."""
    actor = current_actor()
    return actor is None or kind.refuse(actor, READ, name) is None


def refusal_of(item: SourceItem, created: Iterable[str] = ()) -> str:
    """Return why the current actor may not do what a plan does with a definition, or an empty text.

    `created`: the workflows that the plan creates; the actor may start those.
    """
    actor = current_actor()
    if actor is None:
        return ""
    for access in _accesses(item):
        if error := item.kind.refuse(actor, access, item.name):
            return error.message
    if item.wanted is None or not item.changes_something or item.action is Action.ADOPT:
        return ""
    try:
        require_starts(name for name in item.kind.started_workflows(item.wanted.document) if name not in created)
    except Forbidden as refused:
        return refused.message
    return ""


def _accesses(item: SourceItem) -> tuple[str, ...]:
    if item.action is Action.CREATE:
        # A further version of a definition changes it.
        return (CREATE,) if item.is_new else (UPDATE,)
    access = ACCESS_BY_ACTION.get(item.action, READ)
    # A plan that says whether a definition is as given reveals its contents.
    return (READ, access) if access != READ else (READ,)
