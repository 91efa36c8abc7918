"""Commands on the tags of definitions and other objects. A grant on a tag applies to all objects with the tag."""

import re
from collections.abc import Iterable
from typing import Any

from django.apps import apps

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
)
from ..core.errors import Invalid, NotFound
from ..db.database import transaction
from .commands import save_workflow
from .models import WorkflowDefinition

Document = dict[str, Any]
APPLICATION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
TAGGED_MODELS = {
    WORKFLOW_DEF: ("WorkflowDefinition", "name", "workflow_definition"),
    TASK_DEF: ("TaskDefinition", "name", "task_definition"),
    EVENT_HANDLER: ("EventHandler", "name", "event_handler"),
    WEBHOOK: ("Webhook", "pk", "webhook"),
}
"""Table, lookup column and audit type of each kind of object with tags. Slices of some tables import this module."""


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
