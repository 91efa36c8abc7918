"""Kinds of definitions that are planned against what is here: how each is parsed, compared, saved and deleted."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.models import OuterRef, Q, Subquery

from ...access.authentication import Actor, is_allowed, missing_permission_error
from ...access.permissions import EVENT_HANDLER, FORM_TEMPLATE, SCHEDULE, SCHEMA, TASK_DEF, WORKFLOW_DEF
from ...core.cron import parse_timetable
from ...core.document.differences import semantic_changes
from ...core.document.fields import coerce_task, coerce_workflow, normalize_task, normalize_workflow, read_schema
from ...core.errors import Forbidden, ValidationError, ValidationFailed
from ...core.human_tasks import read_form_template
from ...core.masking import REDACTED
from ...core.primitives import JsonValue
from ...core.validation.checks import read_handler
from ...events.commands import handlers as event_handlers
from ...events.models import EventHandler
from ...human_tasks import form_templates as human_tasks_form_templates
from ...human_tasks.models import FormTemplate
from ...schedules import commands as schedules
from ...schedules.commands import OWN_FIELDS
from ...schedules.models import Schedule
from ...utils.differences import MISSING, find_differences
from .. import commands as definition_commands
from .. import schemas, validation
from ..models import NEWEST, SchemaDefinition, TaskDefinition, WorkflowDefinition
from ..validation import check_handler

Document = dict[str, Any]
AUDIT_FIELDS = frozenset({"createTime", "updateTime", "createdBy", "updatedBy"})
"""Fields that this server fills in from its own rows."""
MAX_VALUE_LENGTH = 60
CHUNK = 200
StoredKey = tuple[str, int]
"""The name of a definition, and its version or NEWEST."""


@dataclass(frozen=True)
class PlanContext:
    """What applies to all objects of a plan. `input_templates`: those of its task definitions.

    `activates`: event handlers and schedules keep their state. Otherwise, handlers are saved as inactive and schedules
    as paused.
    """

    by: str
    reason: str
    activates: bool = False
    input_templates: dict[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedObject:
    name: str
    document: Document
    version: int | None = None


class LoadedObject(NamedTuple):
    """An object that is stored here. `changed_at`: the time of its last change, in epoch milliseconds."""

    name: str
    document: Document
    changed_by: str
    changed_at: int


class DefinitionKind:
    """A kind of objects. `label`: its name in reports; `plural`: its name in options.

    `name_field`: the field of a document that has the name. `target_type`: that of the rights on its objects.
    `audit_type`: the type of its objects in the audit log.
    """

    label = plural = ""
    name_field = "name"
    target_type = audit_type = ""
    has_versions = False
    model: Any

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        """Return the object of a document."""
        raise NotImplementedError

    def current(self, wanted: PlannedObject) -> Document | None:
        """Return the document of the object with this name and version here, or None."""
        raise NotImplementedError

    def load(self, names: Collection[str]) -> Iterator[LoadedObject]:
        """Yield the objects with these names. Only for kinds without versions."""
        for row in self.model.objects.filter(name__in=names):
            author, at = row.updated_by or row.created_by, row.updated_at or row.created_at
            yield LoadedObject(row.name, self.stored(row), author, at)

    def lock(self, name: str) -> None:
        """Lock the rows of an object until the end of the transaction."""
        list(self.model.objects.select_for_update().filter(name=name).values_list("pk"))

    def find_problem(self, wanted: PlannedObject, planned: Collection[tuple[str, str]]) -> str:
        """Return why an object cannot be saved in this state of the server, or an empty text.

        `planned`: the kinds, by their plurals, and the names of all objects of the plan.
        """
        return ""

    def refuse(self, actor: Actor, access: str, name: str) -> Forbidden | None:
        """Return the error if an actor has no such access to an object."""
        right, target = (access, self.target_type), {self.target_type: name}
        return None if is_allowed(actor, [right], target) else missing_permission_error(actor, [right], target)

    def other_versions(self, name: str) -> Iterator[Document]:
        return iter(())

    def comparable(self, document: Document) -> Document:
        """Return what must be equal for two documents to count as unchanged."""
        return without_fields(document, AUDIT_FIELDS)

    def changes(self, current: Document, wanted: Document) -> list[str]:
        return [describe_difference(each.path, each.before, each.after) for each in find_differences(current, wanted)]

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        """Save the object with an audit entry.

        Raises:
            RequestRefused: when the command refuses it.
        """
        raise NotImplementedError

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        """Delete the object, or one version of it, with an audit entry.

        Raises:
            RequestRefused: when the command refuses it.
        """
        raise NotImplementedError

    def stored(self, row: Any) -> Document:
        """Return the document of a row as it was saved, its state included."""
        document: Document = row.document
        return document

    def started_workflows(self, document: Document) -> list[str]:
        """Return the names of the workflows that an object starts for the caller who saves it."""
        return []


class VersionedKind(DefinitionKind):
    """A kind whose rows have a name, a version and a document."""

    has_versions = True

    def current(self, wanted: PlannedObject) -> Document | None:
        rows = self.model.objects.filter(name=wanted.name, version=wanted.version)
        return rows.values_list("document", flat=True).first()

    def other_versions(self, name: str) -> Iterator[Document]:
        rows = self.model.objects.filter(name=name).order_by("-version")
        return rows.values_list("document", flat=True).iterator()


class SummarizedKind(DefinitionKind):
    """A kind whose differences the editor describes in its change summary."""

    def comparable(self, document: Document) -> Document:
        return without_fields(self.normalize(document), AUDIT_FIELDS | {"tags"})

    def normalize(self, document: Document) -> Document:
        raise NotImplementedError

    def changes(self, current: Document, wanted: Document) -> list[str]:
        return [each.sentence for each in semantic_changes(current, wanted)] or super().changes(current, wanted)


class WorkflowKind(SummarizedKind, VersionedKind):
    label, plural, model = "workflow definition", "workflows", WorkflowDefinition
    target_type, audit_type = WORKFLOW_DEF, "workflow_definition"

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document = coerce_workflow(without_fields(given, AUDIT_FIELDS | {"tags"}))
        require_none(validation.validate_workflow(document, further_templates=context.input_templates))
        version = int(document.get("version") or 1)
        return PlannedObject(document["name"], {**document, "version": version}, version)

    def normalize(self, document: Document) -> Document:
        return normalize_workflow(document)

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        document = wanted.document
        if new_version:
            newest = WorkflowDefinition.objects.filter(name=wanted.name).order_by("-version").first()
            document = {**document, "version": newest.version + 1 if newest else wanted.version}
        definition_commands.save_workflow(document, context.by, overwrite=replaces, reason=context.reason)

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        definition_commands.delete_workflow(name, version or 1, context.by, context.reason)


class TaskKind(SummarizedKind):
    label, plural = "task definition", "tasks"
    target_type, audit_type, model = TASK_DEF, "task_definition", TaskDefinition

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document = coerce_task(without_fields(given, AUDIT_FIELDS | {"tags"}))
        require_none(validation.validate_task(document))
        return PlannedObject(document["name"], document)

    def current(self, wanted: PlannedObject) -> Document | None:
        return TaskDefinition.objects.filter(name=wanted.name).values_list("document", flat=True).first()

    def normalize(self, document: Document) -> Document:
        return normalize_task(document)

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        definition_commands.save_task(wanted.document, context.by, overwrite=replaces, reason=context.reason)

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        definition_commands.delete_task(name, context.by, context.reason)


class SchemaKind(VersionedKind):
    label, plural, model = "schema", "schemas", SchemaDefinition
    target_type, audit_type = SCHEMA, "schema"

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document, validation_errors = read_schema(without_fields(given, AUDIT_FIELDS))
        require_none(validation_errors)
        return PlannedObject(document["name"], document, document["version"])

    def comparable(self, document: Document) -> Document:
        return without_fields(read_schema(document)[0], AUDIT_FIELDS)

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        schemas.save_schemas([wanted.document], context.by, new_version=new_version, reason=context.reason)

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        schemas.delete_schema(name, version, context.by, context.reason)


class FormTemplateKind(DefinitionKind):
    label, plural, has_versions = "form template", "form-templates", True
    target_type, audit_type, model = FORM_TEMPLATE, "form_template", FormTemplate

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document, validation_errors = read_form_template(without_fields(given, AUDIT_FIELDS))
        require_none([*validation_errors, *human_tasks_form_templates.template_schema_errors(document)])
        return PlannedObject(document["name"], document, document["version"] or 1)

    def current(self, wanted: PlannedObject) -> Document | None:
        row = FormTemplate.objects.filter(name=wanted.name, version=wanted.version or 1).first()
        return None if row is None else self.stored(row)

    def other_versions(self, name: str) -> Iterator[Document]:
        return map(self.stored, FormTemplate.objects.filter(name=name).order_by("-version"))

    def stored(self, row: FormTemplate) -> Document:
        return {**row.document, "name": row.name, "version": row.version}

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        document = {**wanted.document, "version": wanted.version}
        human_tasks_form_templates.save_templates(
            [document], context.by, new_version=new_version, reason=context.reason
        )

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        human_tasks_form_templates.delete_template(name, version, context.by, context.reason)


class HandlerKind(DefinitionKind):
    """Event handlers. Unless the context activates them, they are saved as inactive: the source handles the events."""

    label, plural = "event handler", "event-handlers"
    target_type, audit_type, model = EVENT_HANDLER, "event_handler", EventHandler

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document, validation_errors = check_handler(without_fields(given, AUDIT_FIELDS | {"tags"}))
        require_none(validation_errors)
        return PlannedObject(document["name"], document if context.activates else {**document, "active": False})

    def current(self, wanted: PlannedObject) -> Document | None:
        document = EventHandler.objects.filter(name=wanted.name).values_list("document", flat=True).first()
        # A handler that an operator has activated here since the import is not different for that.
        return None if document is None else document | ({} if wanted.document["active"] else {"active": False})

    def comparable(self, document: Document) -> Document:
        return without_fields(read_handler(document)[0], AUDIT_FIELDS | {"tags"})

    def started_workflows(self, document: Document) -> list[str]:
        params = [action.get("start_workflow") for action in document["actions"]]
        names = [param.get("name") for param in params if isinstance(param, dict)]
        return [name for name in names if isinstance(name, str) and name and "${" not in name]

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        if replaces:
            event_handlers.update_handler(wanted.document, context.by, context.reason)
        else:
            event_handlers.create_handlers([wanted.document], context.by, context.reason)

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        event_handlers.delete_handler(name, context.by, context.reason)


class ScheduleKind(DefinitionKind):
    """Schedules. Unless the context activates them, they are saved as paused: the source starts the same runs.

    `parse_schedule`: the parser of the API.
    """

    label, plural = "schedule", "schedules"
    target_type, audit_type, model = SCHEDULE, "schedule", Schedule

    def __init__(self, parse_schedule: Callable[[Document], Document]) -> None:
        self._parse_schedule = parse_schedule

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        document = self._parse_schedule(without_fields(given, AUDIT_FIELDS))
        parse_timetable(document)
        if not context.activates and not document["paused"]:
            document |= {"paused": True, "pausedReason": context.reason}
        return PlannedObject(document["name"], document)

    def current(self, wanted: PlannedObject) -> Document | None:
        row = Schedule.objects.filter(name=wanted.name).first()
        if row is None:
            return None
        document = self.stored(row)
        if not wanted.document.get("tags"):
            document.pop("tags", None)
        # A schedule that an operator has resumed here since the import is not different for that.
        return document | {"paused": row.is_paused or wanted.document["paused"]}

    def stored(self, row: Schedule) -> Document:
        document = {**row.document, "name": row.name, "paused": row.is_paused}
        return document | ({"tags": row.tags} if row.tags else {})

    def started_workflows(self, document: Document) -> list[str]:
        request = document["startWorkflowRequest"]
        return [] if request.get("workflowDef") else [request["name"]]

    def comparable(self, document: Document) -> Document:
        without = OWN_FIELDS - {"paused"} if not document.get("tags") else OWN_FIELDS - {"paused", "tags"}
        return without_fields(document, without)

    def changes(self, current: Document, wanted: Document) -> list[str]:
        return [
            describe_difference(each.path, each.before, each.after)
            for each in find_differences(current, wanted)
            # A masked value can be read neither here nor there.
            if REDACTED not in (each.before, each.after)
        ]

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        schedules.save_schedule(wanted.document, context.by, context.reason)

    def delete(self, name: str, version: int | None, context: PlanContext) -> None:
        schedules.delete_schedule(name, context.by, context.reason)


def without_fields(document: Document, names: frozenset[str]) -> Document:
    return {name: value for name, value in document.items() if name not in names}


def require_none(validation_errors: list[ValidationError]) -> None:
    if validation_errors:
        raise ValidationFailed(validation_errors)


def describe_elements(noun: str, before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Return the differences between two sets of texts as sentences. `noun`: what an element is."""
    here, there = set(before), set(after)
    added = [f"{noun} {each} added" for each in sorted(there - here)]
    return added + [f"{noun} {each} removed" for each in sorted(here - there)]


def describe_difference(path: str, before: JsonValue, after: JsonValue) -> str:
    if before is MISSING:
        return f"{path} set to {_shorten(after)}"
    if after is MISSING:
        return f"{path} removed, was {_shorten(before)}"
    return f"{path}: {_shorten(before)} to {_shorten(after)}"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """A definition. `version`: 0 if its kind has none. `changed_at`: of the last change, in epoch milliseconds."""

    document: dict[str, Any]
    version: int
    changed_by: str
    changed_at: int


def load_stored(kind: DefinitionKind, wanted: Iterable[StoredKey]) -> dict[StoredKey, StoredDefinition]:
    """Return the definitions of one kind that exist, with one query for 200 of them."""
    found: dict[StoredKey, StoredDefinition] = {}
    keys = sorted(set(wanted))
    for start in range(0, len(keys), CHUNK):
        found |= _load_chunk(kind, set(keys[start : start + CHUNK]))
    return found


def _load_chunk(kind: DefinitionKind, wanted: set[StoredKey]) -> dict[StoredKey, StoredDefinition]:
    names = {name for name, _ in wanted}
    if not kind.has_versions:
        return {
            (name, NEWEST): StoredDefinition(document, 0, changed_by, changed_at)
            for name, document, changed_by, changed_at in kind.load(names)
        }
    rows = kind.model.objects.filter(name__in=names)
    of_name = kind.model.objects.filter(name=OuterRef("name"))
    newest = Subquery(of_name.order_by("-version").values("version")[:1])
    is_stated = Q(version__in={version for _, version in wanted if version != NEWEST})
    found: dict[StoredKey, StoredDefinition] = {}
    for row in rows.annotate(newest_version=newest).filter(is_stated | Q(version=newest)):
        author, at = row.updated_by or row.created_by, row.updated_at or row.created_at
        stored = StoredDefinition(kind.stored(row), row.version, author, at)
        found[row.name, row.version] = stored
        if row.version == row.newest_version:
            found[row.name, NEWEST] = stored
    return found


def differences(kind: DefinitionKind, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the differences between two documents of a kind as sentences, without those of the version and of tags.

    Tags count only where both documents have them: other tools set them too.
    """
    before, after = kind.comparable(before), kind.comparable(after)
    skipped = {"version"} if kind.has_versions else set()
    if not before.get("tags") or not after.get("tags"):
        skipped.add("tags")
    before, after = (
        {name: value for name, value in document.items() if name not in skipped} for document in (before, after)
    )
    return [] if before == after else kind.changes(before, after)
