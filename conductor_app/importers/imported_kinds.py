"""The kinds of objects that are imported. Documents are parsed and saved by the functions that the API uses."""

from typing import Any

from conductor_app.access.access_types import EVENT_HANDLER, TASK_DEF, WORKFLOW_DEF
from conductor_app.api.conductor.definitions.tag_serializers import parse_tags
from conductor_app.api.conductor.schedules.schedule_serializers import parse_schedule
from conductor_app.core.document.checks.values import DocumentPosition
from conductor_app.core.errors import Invalid
from conductor_app.engine.access import secrets_and_variables
from conductor_app.engine.definitions import tags
from conductor_app.engine.definitions.definition_kinds import (
    DefinitionKind,
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

Document = dict[str, Any]


class VariableKind(DefinitionKind):
    label, plural = "environment variable", "variables"

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        name, value = given.get("name"), given.get("value")
        if not isinstance(name, str) or not isinstance(value, str):
            raise Invalid("An environment variable must have a name and a value, which are texts.")
        secrets_and_variables.check_name_and_value(name, value)
        return PlannedObject(name, {"value": value.replace("\0", "")})

    def current(self, wanted: PlannedObject) -> Document | None:
        values = secrets_and_variables.list_variables()
        return {"value": values[wanted.name]} if wanted.name in values else None

    def changes(self, current: Document, wanted: Document) -> list[str]:
        """Return that the value differs, without the value."""
        return ["value differs"]

    def save(self, wanted: PlannedObject, context: PlanContext, *, replaces: bool, new_version: bool) -> None:
        secrets_and_variables.put_variable(wanted.name, wanted.document["value"], context.by, context.reason)


TAGGED = {"workflow": WORKFLOW_DEF, "task": TASK_DEF, "event handler": EVENT_HANDLER}


class TagKind(DefinitionKind):
    """The tags of one definition. Missing tags are added; others stay."""

    label, plural = "tags", "tags"

    def parse(self, given: Document, context: PlanContext) -> PlannedObject:
        position = DocumentPosition("tags")
        found = parse_tags(given.get("tags"), position)
        require_none(position.validation_errors)
        wanted = [tag for tag in found if tag["type"] == tags.METADATA]
        return PlannedObject(f"{given['of']} {given['name']}", {**given, "tags": wanted})

    def current(self, wanted: PlannedObject) -> Document | None:
        document = wanted.document
        present = tags.metadata_tags(TAGGED[document["of"]], document["name"])
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
