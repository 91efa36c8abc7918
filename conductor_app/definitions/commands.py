"""Commands on workflow and task definitions, drafts, which belong to their authors, simulation cases, and tags.

Each change of a definition invalidates the caches of all processes. A grant on a tag applies to all objects with the
tag, which are those of other slices, too.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.apps import apps
from django.db import IntegrityError

from ..access import audit
from ..access.audit import record_access_change
from ..access.authentication import Actor
from ..access.grants import METADATA, RATE_LIMIT, metadata_tags, require_tag, require_valid_tag
from ..access.models import Tag
from ..access.permissions import (
    APPLICATION,
    EVENT_HANDLER,
    INTEGRATION,
    INTEGRATION_PROVIDER,
    READ,
    TASK_DEF,
    WEBHOOK,
    WORKFLOW_DEF,
    require_plain_name,
)
from ..core.document.reading import extract_definitions, read_definition
from ..core.errors import Conflict, Invalid, NotFound, RequestRefused, ValidationError, ValidationFailed
from ..db.database import transaction
from ..db.fields import strip_nul
from ..utils import clock, process_state
from .models import DefinitionDraft, SaveRequirement, SimulationCase, TaskDefinition, WorkflowDefinition
from .store import record_definition_change
from .validation import validate_task, validate_workflow

Document = dict[str, Any]
_save_check: process_state.Wiring[Callable[[Document], None]] = process_state.wiring(lambda document: None)
MAX_DRAFT_LENGTH = 5_000_000
MAX_CASES = 100
APPLICATION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
TAGGED_MODELS = {
    WORKFLOW_DEF: ("WorkflowDefinition", "name", "workflow_definition"),
    TASK_DEF: ("TaskDefinition", "name", "task_definition"),
    EVENT_HANDLER: ("EventHandler", "name", "event_handler"),
    WEBHOOK: ("Webhook", "pk", "webhook"),
}
"""Table, lookup column and audit type of each kind of object with tags. Slices of some tables import this module."""


def save_workflow(document: Document, by: str, *, overwrite: bool, reason: str = "") -> None:
    """Save a workflow definition.

    Raises:
        Conflict: when the version exists and `overwrite` is False, or a simulation case blocks the save.
    """
    _check_workflow(document)
    _save_check.value(document)
    with transaction.atomic():
        _save_workflow_row(document, by, overwrite, reason)


def save_workflows(documents: Sequence[Document], by: str) -> dict[str, Any]:
    """Save several workflow definitions. Returns the names that were `saved`, and `errors` by name.

    Raises:
        ValidationFailed: when one of the documents is invalid. Nothing is saved then.
    """
    validation_errors = [
        each for number, document in enumerate(documents) for each in validate_workflow(document, f"[{number}].")
    ]
    if validation_errors:
        raise ValidationFailed(validation_errors)
    saved, errors = [], {}
    for document in documents:
        try:
            save_workflow(document, by, overwrite=True)
            saved.append(document["name"])
        except RequestRefused as refused:
            errors[document["name"]] = refused.message
    return {"saved": saved, "errors": errors}


def restore_workflow(name: str, version: int, by: str, reason: str = "") -> int:
    """Save the document of an old version as the newest version, and return its number.

    Raises:
        NotFound: when there is no such version.
        ValidationFailed: when the document is invalid by today's checks.
    """
    again = WorkflowDefinition.objects.filter(name=name, version=version).values_list("document", flat=True).first()
    if again is not None:
        # The cases run before the lock, because they are slow. The version may change in between: accepted.
        _save_check.value(again)
    with transaction.atomic():
        # The lock on the newest version keeps two concurrent restores from using the same number.
        newest = WorkflowDefinition.objects.select_for_update().filter(name=name).order_by("-version").first()
        old = WorkflowDefinition.objects.filter(name=name, version=version).first()
        if newest is None or old is None:
            raise NotFound(f"No such workflow definition: {name} version: {version}")
        document = {**old.document, "version": newest.version + 1}
        _check_workflow(document)
        _save_workflow_row(document, by, False, reason)
    return newest.version + 1


def delete_workflow(name: str, version: int, by: str, reason: str = "") -> None:
    """Delete a version of a workflow definition. Its runs keep their resolved definitions."""
    with transaction.atomic():
        if not WorkflowDefinition.objects.filter(name=name, version=version).delete()[0]:
            raise NotFound(f"No such workflow definition: {name} version: {version}")
        record_definition_change("workflow_definition", f"{name}:{version}", "delete", by, reason, clock.now())


def register_save_check(check: Callable[[Document], None]) -> None:
    """Register what is checked before a workflow is saved, outside of its transaction: its simulation cases."""
    _save_check.value = check


def _check_workflow(document: Document) -> None:
    if validation_errors := validate_workflow(document):
        raise ValidationFailed(validation_errors)
    for inline in extract_definitions(document)[1].values():
        require_plain_name(str(inline.get("name")))
    read_definition(document)


def _save_workflow_row(document: Document, by: str, overwrite: bool, reason: str) -> None:
    now = clock.now()
    name, version = document["name"], int(document.get("version") or 1)
    document = {**document, "version": version}
    found = WorkflowDefinition.objects.select_for_update().filter(name=name, version=version).first()
    if found is not None and not overwrite:
        raise Conflict(f"Workflow with {name}.{version} already exists!")
    row = found or WorkflowDefinition(name=name, version=version, created_at=now, created_by=by, revision=0)
    config = document.get("rateLimitConfig") or {}
    row.document, row.description = document, str(document.get("description") or "")
    row.failure_workflow = str(document.get("failureWorkflow") or "")[:255]
    row.rate_limit_key = str(config.get("rateLimitKey") or "")[:512]
    row.concurrent_limit = int(config.get("concurrentExecLimit") or 0)
    row.owner_email = str(document.get("ownerEmail") or "")[:255]
    row.updated_at, row.updated_by, row.revision = (now if found else 0), by, row.revision + 1
    _try_to_save(row, f"Workflow with {name}.{version} already exists!")
    record_definition_change(
        "workflow_definition", f"{name}:{version}", "overwrite" if found else "create", by, reason, now
    )


def _try_to_save(row: Any, taken: str) -> None:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        # A concurrent request created the same row first.
        raise Conflict(taken) from None


def archive(kind: type[WorkflowDefinition] | type[TaskDefinition], name: str, by: str, reason: str = "") -> None:
    """Archive all versions of a definition: lists hide it, and it still works."""
    _set_archived(kind, name, clock.now(), "archive", by, reason)


def unarchive(kind: type[WorkflowDefinition] | type[TaskDefinition], name: str, by: str, reason: str = "") -> None:
    """Show an archived definition in lists again."""
    _set_archived(kind, name, None, "take back", by, reason)


def _set_archived(kind: Any, name: str, at: int | None, action: str, by: str, reason: str) -> None:
    object_type = "workflow_definition" if kind is WorkflowDefinition else "task_definition"
    with transaction.atomic():
        if not kind.objects.filter(name=name).update(archived_at=at):
            raise NotFound(f"There is no definition {name}.")
        record_definition_change(object_type, name, action, by, reason, clock.now())


def save_task(
    document: Document, by: str, *, must_exist: bool = False, overwrite: bool = True, reason: str = ""
) -> None:
    """Save a task definition.

    Raises:
        NotFound: when `must_exist` is set and there is no such definition.
        Conflict: when the definition exists and `overwrite` is False.
    """
    save_tasks([document], by, must_exist=must_exist, overwrite=overwrite, reason=reason, prefix="")


def save_tasks(
    documents: Sequence[Document],
    by: str,
    *,
    must_exist: bool = False,
    overwrite: bool = True,
    reason: str = "",
    prefix: str = "[{number}].",
) -> None:
    """Save several task definitions, or none if one of them is refused.

    Raises:
        ValidationFailed: when one of the documents is invalid.
        NotFound: when `must_exist` is set and one of the definitions does not exist.
        Conflict: when one of the definitions exists and `overwrite` is False.
    """
    validation_errors = [
        ValidationError(prefix.format(number=number) + each.path, each.message, each.value)
        for number, document in enumerate(documents)
        for each in validate_task(document)
    ]
    if validation_errors:
        raise ValidationFailed(validation_errors)
    with transaction.atomic():
        for document in documents:
            _save_task_row(document, by, must_exist, overwrite, reason)


def _save_task_row(document: Document, by: str, must_exist: bool, overwrite: bool, reason: str) -> None:
    now, name = clock.now(), document["name"]
    found = TaskDefinition.objects.select_for_update().filter(name=name).first()
    if found is None and must_exist:
        raise NotFound(f"No such task definition: {name}")
    if found is not None and not overwrite:
        raise Conflict(f"The task definition {name} already exists.")
    row = found or TaskDefinition(name=name, created_at=now, created_by=by, revision=0)
    row.document, row.description = document, str(document.get("description") or "")
    row.concurrent_limit = int(document.get("concurrentExecLimit") or 0)
    row.rate_count = int(document.get("rateLimitPerFrequency") or 0)
    row.rate_seconds = int(document.get("rateLimitFrequencyInSeconds") or 1)
    row.owner_email = str(document.get("ownerEmail") or "")[:255]
    row.updated_at, row.updated_by, row.revision = (now if found else 0), by, row.revision + 1
    _try_to_save(row, f"The task definition {name} already exists.")
    record_definition_change("task_definition", name, "overwrite" if found else "create", by, reason, now)


def delete_task(name: str, by: str, reason: str = "") -> None:
    """Delete a task definition."""
    with transaction.atomic():
        if not TaskDefinition.objects.filter(name=name).delete()[0]:
            raise NotFound(f"No such task definition: {name}")
        record_definition_change("task_definition", name, "delete", by, reason, clock.now())


def save_draft(kind: str, name: str, text: str, base: str, by: str) -> None:
    """Save an author's draft of a definition. It replaces the previous draft.

    Raises:
        Invalid: when the draft is too long.
    """
    if len(text) > MAX_DRAFT_LENGTH:
        raise Invalid(f"A draft can have at most {MAX_DRAFT_LENGTH:,} characters (got {len(text):,}).")
    values = {"text": strip_nul(text), "base": base[:64], "updated_at": clock.now()}
    DefinitionDraft.objects.update_or_create(kind=kind, name=name[:255], author=by[:255], defaults=values)


def delete_draft(kind: str, name: str, by: str) -> None:
    """Delete an author's draft, if there is one."""
    DefinitionDraft.objects.filter(kind=kind, name=name[:255], author=by[:255]).delete()


def save_case(workflow: str, name: str, case: dict[str, Any], by: str) -> None:
    """Save a simulation case of a workflow. It replaces a case of the same name.

    Raises:
        Invalid: when the name is empty, or the workflow has too many cases.
    """
    name = strip_nul(name).strip()[:120]
    if not name:
        raise Invalid("Enter a name for the case.")
    with transaction.atomic():
        others = SimulationCase.objects.filter(workflow=workflow).exclude(name=name)
        if others.count() >= MAX_CASES:
            raise Invalid(f"{workflow} already has {MAX_CASES} cases. Delete one first.")
        now = clock.now()
        values = {**case, "created_at": now, "created_by": by[:255]}
        SimulationCase.objects.update_or_create(workflow=workflow, name=name, defaults=values)
        audit.record("workflow_definition", workflow, "save test case", by, reason=name, at=now)


def set_save_requirement(workflow: str, holds: bool, by: str) -> None:
    """Set whether a workflow can be saved while one of its simulation cases fails."""
    with transaction.atomic():
        SaveRequirement.objects.update_or_create(workflow=workflow, defaults={"holds": holds})
        audit.record("workflow_definition", workflow, "require test cases" if holds else "make test cases optional", by)


def delete_case(workflow: str, name: str, by: str) -> None:
    """Delete a simulation case."""
    with transaction.atomic():
        if not SimulationCase.objects.filter(workflow=workflow, name=name).delete()[0]:
            raise NotFound(f"{workflow} has no case {name}.")
        now = clock.now()
        audit.record("workflow_definition", workflow, "delete test case", by, reason=name, at=now)


def list_tags(target: str, name: str) -> list[Document]:
    """Return the tags of an object. The rate limit of a workflow is shown as a tag."""
    _refuse_unknown(target, name)
    found = metadata_tags(target, name)
    config = run_limit(name) if target == WORKFLOW_DEF else None
    if config:
        found.append({"key": config["rateLimitKey"], "value": config["concurrentExecLimit"], "type": RATE_LIMIT})
    return found


def readable_tags(actor: Actor) -> list[Document]:
    """Return the distinct tags of the objects that the actor may read."""
    rows = list(Tag.objects.order_by("key", "value").values_list("key", "value", "object_type", "object_name"))
    if not actor.permissions.is_admin:
        webhooks = apps.get_model("conductor", "Webhook").objects
        # Tags name a webhook by its id, and grants by its name.
        names = {str(pk): name for pk, name in webhooks.values_list("pk", "name")}
        rows = [row for row in rows if _may_read(actor, row[2], names.get(row[3], "") if row[2] == WEBHOOK else row[3])]
    return [{"key": key, "value": value, "type": METADATA} for key, value in dict.fromkeys(row[:2] for row in rows)]


def _may_read(actor: Actor, target: str, name: str) -> bool:
    """Return True if the actor may read the object. Models belong to their integration, `integration:model`."""
    if target == INTEGRATION:
        target, name = INTEGRATION_PROVIDER, name.partition(":")[0]
    return actor.permissions.allows(READ, target, name)


def add_tags(target: str, name: str, tags: Iterable[Document], by: str) -> None:
    """Add tags to an object. A RATE_LIMIT tag is saved in the workflow's document.

    Raises:
        Invalid: when a tag is too long, or a RATE_LIMIT is invalid.
    """
    with transaction.atomic():
        _refuse_unknown(target, name)
        for tag in tags:
            if tag["type"] == RATE_LIMIT:
                _write_run_limit(
                    target,
                    name,
                    {"rateLimitKey": tag["key"], "concurrentExecLimit": _parse_whole_number(tag["value"])},
                    by,
                )
            else:
                require_valid_tag(tag)
                require_tag(target, name, tag["key"], tag["value"])
                Tag.objects.get_or_create(object_type=target, object_name=name, key=tag["key"], value=tag["value"])
        _record_change(target, name, "tag", by)


def remove_tags(target: str, name: str, tags: Iterable[Document], by: str) -> None:
    """Remove tags from an object. Tags that it does not have are ignored."""
    with transaction.atomic():
        _refuse_unknown(target, name)
        for tag in tags:
            if tag["type"] == RATE_LIMIT:
                _write_run_limit(target, name, None, by)
            else:
                Tag.objects.filter(object_type=target, object_name=name, key=tag["key"], value=tag["value"]).delete()
        _record_change(target, name, "tag", by)


def set_tags(target: str, name: str, tags: list[Document], by: str) -> None:
    """Replace the tags of an object. A rate limit stays unless the tags contain one.

    Raises:
        Invalid: when a tag is too long, or a RATE_LIMIT is invalid.
    """
    with transaction.atomic():
        _refuse_unknown(target, name)
        wanted = {(tag["key"], tag["value"]) for tag in tags if tag["type"] != RATE_LIMIT}
        removed = [tag for tag in metadata_tags(target, name) if (tag["key"], tag["value"]) not in wanted]
        remove_tags(target, name, removed, by)
        add_tags(target, name, tags, by)


def run_limit(name: str) -> Document | None:
    """Return the rate limit of a workflow's newest version, or None."""
    row = WorkflowDefinition.objects.filter(name=name).order_by("-version").first()
    if row is None:
        raise NotFound(f"No such workflow found by name: {name}")
    return row.document.get("rateLimitConfig") if row.concurrent_limit else None


def set_run_limit(name: str, config: Document | None, by: str) -> None:
    """Set or remove the rate limit of all versions of a workflow."""
    with transaction.atomic():
        _refuse_unknown(WORKFLOW_DEF, name)
        for row in WorkflowDefinition.objects.select_for_update().filter(name=name).order_by("version"):
            document = {key: value for key, value in row.document.items() if key != "rateLimitConfig"}
            document |= {"rateLimitConfig": config} if config else {}
            if document != row.document:
                save_workflow(document, by, overwrite=True, reason="Change of the rate limit.")


def _write_run_limit(target: str, name: str, config: Document | None, by: str) -> None:
    if target != WORKFLOW_DEF:
        raise Invalid("A RATE_LIMIT tag applies to workflows only. Set the limits of a task in its definition.")
    set_run_limit(name, config, by)


def _parse_whole_number(value: str) -> int:
    if not (value.isascii() and value.isdigit() and 0 < int(value[:12]) < 2**31):
        raise Invalid(f"The value of a RATE_LIMIT tag must be a positive whole number (got '{value[:100]}').")
    return int(value)


def _refuse_unknown(target: str, name: str) -> None:
    if target == APPLICATION and not APPLICATION_ID.fullmatch(name):
        raise NotFound(f"There is no application {name}.")
    if target not in TAGGED_MODELS:
        return
    model, column, kind = TAGGED_MODELS[target]
    if not apps.get_model("conductor", model)._default_manager.filter(**{column: name}).exists():
        raise NotFound(f"There is no {kind.replace('_', ' ')} named {name}.")


def _record_change(target: str, name: str, action: str, by: str) -> None:
    kind = TAGGED_MODELS[target][2] if target in TAGGED_MODELS else target.lower()
    record_access_change(
        kind, name, action, by, tags=[f"{tag['key']}:{tag['value']}" for tag in metadata_tags(target, name)]
    )
