"""The kinds of objects that are imported: how each is parsed, compared with what is here, and saved.

Documents are parsed and saved by the functions that the API uses.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from conductor_app.access.access_types import EVENT_HANDLER, TASK_DEF, WORKFLOW_DEF
from conductor_app.api.conductor.definitions.tag_serializers import parse_tags
from conductor_app.api.conductor.schedules.schedule_serializers import parse_schedule
from conductor_app.core.document.checks import (
    coerce_task,
    coerce_workflow,
    normalize_task,
    normalize_workflow,
    read_handler,
)
from conductor_app.core.document.checks.schema import read_schema
from conductor_app.core.document.checks.values import DocumentPosition
from conductor_app.core.document.semantic_diff import semantic_changes
from conductor_app.core.errors import Invalid, ValidationError, ValidationFailed
from conductor_app.core.form_templates import read_form_template
from conductor_app.core.masking import REDACTED
from conductor_app.core.timetable import parse_timetable
from conductor_app.engine import schedules
from conductor_app.engine.access import secrets_and_variables
from conductor_app.engine.definitions import definition_commands, form_templates, schemas, tags
from conductor_app.engine.events import event_handlers
from conductor_app.engine.schedules.saving import OWN_FIELDS
from conductor_app.insight.differences import MISSING, find_differences
from conductor_app.models import (
    EventHandler,
    FormTemplate,
    Schedule,
    SchemaDefinition,
    TaskDefinition,
    WorkflowDefinition,
)

Document = dict[str, Any]
AUDIT_FIELDS = frozenset({"createTime", "updateTime", "createdBy", "updatedBy"})
"""Fields that this server fills in from its own rows."""
MAX_VALUE_LENGTH = 60


@dataclass(frozen=True)
class ImportContext:
    """What applies to all objects of an import. `input_templates`: those of the source's task definitions."""

    by: str
    reason: str
    activates: bool = False
    input_templates: dict[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedObject:
    """A parsed object of the source."""

    name: str
    document: Document
    version: int | None = None


class ImportKind:
    """A kind of objects. `label`: its name in reports; `plural`: its name in options.

    `name_field`: the field of a document that has the name.
    """

    label = plural = ""
    name_field = "name"
    has_versions = False

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        """Return the object of a document.

        Raises:
            Invalid: when this server would refuse it.
        """
        raise NotImplementedError

    def current(self, wanted: ImportedObject) -> Document | None:
        """Return the document of the object with this name and version here, or None."""
        raise NotImplementedError

    def other_versions(self, name: str) -> Iterator[Document]:
        """Yield the documents of all versions with this name here."""
        return iter(())

    def comparable(self, document: Document) -> Document:
        """Return what must be equal for two documents to count as unchanged."""
        return _without(document, AUDIT_FIELDS)

    def changes(self, current: Document, wanted: Document) -> list[str]:
        """Return the differences as sentences."""
        return [_describe(each.path, each.before, each.after) for each in find_differences(current, wanted)]

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        """Save the object with an audit entry.

        Raises:
            RequestRefused: when the command refuses it.
        """
        raise NotImplementedError


class VersionedKind(ImportKind):
    """A kind whose rows have a name, a version and a document."""

    has_versions = True
    model: Any

    def current(self, wanted: ImportedObject) -> Document | None:
        rows = self.model.objects.filter(name=wanted.name, version=wanted.version)
        return rows.values_list("document", flat=True).first()

    def other_versions(self, name: str) -> Iterator[Document]:
        rows = self.model.objects.filter(name=name).order_by("-version")
        return rows.values_list("document", flat=True).iterator()


class WorkflowKind(VersionedKind):
    label, plural, model = "workflow definition", "workflows", WorkflowDefinition

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        document = coerce_workflow(_without(given, AUDIT_FIELDS | {"tags"}))
        _require_none(definition_commands.validate_workflow(document, further_templates=context.input_templates))
        version = int(document.get("version") or 1)
        return ImportedObject(document["name"], {**document, "version": version}, version)

    def comparable(self, document: Document) -> Document:
        return _without(normalize_workflow(document), AUDIT_FIELDS | {"tags"})

    def changes(self, current: Document, wanted: Document) -> list[str]:
        return [each.sentence for each in semantic_changes(current, wanted)] or super().changes(current, wanted)

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        document = wanted.document
        if new_version:
            newest = WorkflowDefinition.objects.filter(name=wanted.name).order_by("-version").first()
            document = {**document, "version": newest.version + 1 if newest else wanted.version}
        definition_commands.save_workflow(document, context.by, overwrite=replaces, reason=context.reason)


class TaskKind(ImportKind):
    label, plural = "task definition", "tasks"

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        document = coerce_task(_without(given, AUDIT_FIELDS | {"tags"}))
        _require_none(definition_commands.validate_task(document))
        return ImportedObject(document["name"], document)

    def current(self, wanted: ImportedObject) -> Document | None:
        return TaskDefinition.objects.filter(name=wanted.name).values_list("document", flat=True).first()

    def comparable(self, document: Document) -> Document:
        return _without(normalize_task(document), AUDIT_FIELDS | {"tags"})

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        definition_commands.save_task(wanted.document, context.by, overwrite=replaces, reason=context.reason)


class SchemaKind(VersionedKind):
    label, plural, model = "schema", "schemas", SchemaDefinition

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        document, validation_errors = read_schema(_without(given, AUDIT_FIELDS))
        _require_none(validation_errors)
        return ImportedObject(document["name"], document, document["version"])

    def comparable(self, document: Document) -> Document:
        return _without(read_schema(document)[0], AUDIT_FIELDS)

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        schemas.save_schemas([wanted.document], context.by, new_version=new_version)


class FormTemplateKind(ImportKind):
    label, plural, has_versions = "form template", "form-templates", True

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        document, validation_errors = read_form_template(_without(given, AUDIT_FIELDS))
        _require_none([*validation_errors, *form_templates.template_schema_errors(document)])
        return ImportedObject(document["name"], document, document["version"] or 1)

    def current(self, wanted: ImportedObject) -> Document | None:
        row = FormTemplate.objects.filter(name=wanted.name, version=wanted.version or 1).first()
        return None if row is None else {**row.document, "name": row.name, "version": row.version}

    def other_versions(self, name: str) -> Iterator[Document]:
        for row in FormTemplate.objects.filter(name=name).order_by("-version"):
            yield {**row.document, "name": row.name, "version": row.version}

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        document = {**wanted.document, "version": wanted.version}
        form_templates.save_templates([document], context.by, new_version=new_version, reason=context.reason)


class VariableKind(ImportKind):
    label, plural = "environment variable", "variables"

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        name, value = given.get("name"), given.get("value")
        if not isinstance(name, str) or not isinstance(value, str):
            raise Invalid("An environment variable must have a name and a value, which are texts.")
        secrets_and_variables.check_name_and_value(name, value)
        return ImportedObject(name, {"value": value.replace("\0", "")})

    def current(self, wanted: ImportedObject) -> Document | None:
        values = secrets_and_variables.list_variables()
        return {"value": values[wanted.name]} if wanted.name in values else None

    def changes(self, current: Document, wanted: Document) -> list[str]:
        """Return that the value differs, without the value."""
        return ["value differs"]

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        secrets_and_variables.put_variable(wanted.name, wanted.document["value"], context.by, context.reason)


class HandlerKind(ImportKind):
    """Event handlers. They are saved as inactive, because the source would handle the same events."""

    label, plural = "event handler", "event-handlers"

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        document, validation_errors = read_handler(_without(given, AUDIT_FIELDS | {"tags"}))
        _require_none(validation_errors)
        return ImportedObject(document["name"], document if context.activates else {**document, "active": False})

    def current(self, wanted: ImportedObject) -> Document | None:
        document = EventHandler.objects.filter(name=wanted.name).values_list("document", flat=True).first()
        # A handler that an operator has activated here since the import is not different for that.
        return None if document is None else document | ({} if wanted.document["active"] else {"active": False})

    def comparable(self, document: Document) -> Document:
        return _without(read_handler(document)[0], AUDIT_FIELDS | {"tags"})

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        if replaces:
            event_handlers.update_handler(wanted.document, context.by, context.reason)
        else:
            event_handlers.create_handlers([wanted.document], context.by, context.reason)


class ScheduleKind(ImportKind):
    """Schedules. They are saved as paused, because the source would start the same runs."""

    label, plural = "schedule", "schedules"

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        document = parse_schedule(_without(given, AUDIT_FIELDS))
        parse_timetable(document)
        if not context.activates and not document["paused"]:
            document |= {"paused": True, "pausedReason": context.reason}
        return ImportedObject(document["name"], document)

    def current(self, wanted: ImportedObject) -> Document | None:
        row = Schedule.objects.filter(name=wanted.name).first()
        if row is None:
            return None
        document = {**row.document, "name": row.name, **({"tags": row.tags} if wanted.document.get("tags") else {})}
        # A schedule that an operator has resumed here since the import is not different for that.
        return document | {"paused": row.is_paused or wanted.document["paused"]}

    def comparable(self, document: Document) -> Document:
        without = OWN_FIELDS - {"paused"} if not document.get("tags") else OWN_FIELDS - {"paused", "tags"}
        return _without(document, without)

    def changes(self, current: Document, wanted: Document) -> list[str]:
        return [
            _describe(each.path, each.before, each.after)
            for each in find_differences(current, wanted)
            # A masked value can be read neither here nor there.
            if REDACTED not in (each.before, each.after)
        ]

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        schedules.save_schedule(wanted.document, context.by, context.reason)


TAGGED = {"workflow": WORKFLOW_DEF, "task": TASK_DEF, "event handler": EVENT_HANDLER}


class TagKind(ImportKind):
    """The tags of one definition. Missing tags are added; others stay."""

    label, plural = "tags", "tags"

    def parse(self, given: Document, context: ImportContext) -> ImportedObject:
        position = DocumentPosition("tags")
        found = parse_tags(given.get("tags"), position)
        _require_none(position.validation_errors)
        wanted = [tag for tag in found if tag["type"] == tags.METADATA]
        return ImportedObject(f"{given['of']} {given['name']}", {**given, "tags": wanted})

    def current(self, wanted: ImportedObject) -> Document | None:
        document = wanted.document
        present = tags.metadata_tags(TAGGED[document["of"]], document["name"])
        missing = [tag for tag in document["tags"] if tag not in present]
        return None if missing else document

    def save(self, wanted: ImportedObject, context: ImportContext, *, replaces: bool, new_version: bool) -> None:
        document = wanted.document
        tags.add_tags(TAGGED[document["of"]], document["name"], document["tags"], context.by)


KINDS: tuple[ImportKind, ...] = (
    SchemaKind(), TaskKind(), FormTemplateKind(), WorkflowKind(), VariableKind(), HandlerKind(), ScheduleKind(),
    TagKind(),
)  # fmt: skip
"""All kinds, in the order of the import: what a definition uses comes before it."""


def _without(document: Document, names: frozenset[str]) -> Document:
    return {name: value for name, value in document.items() if name not in names}


def _require_none(validation_errors: list[ValidationError]) -> None:
    if validation_errors:
        raise ValidationFailed(validation_errors)


def _describe(path: str, before: Any, after: Any) -> str:
    if before is MISSING:
        return f"{path} set to {_shorten(after)}"
    if after is MISSING:
        return f"{path} removed, was {_shorten(before)}"
    return f"{path}: {_shorten(before)} to {_shorten(after)}"


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
