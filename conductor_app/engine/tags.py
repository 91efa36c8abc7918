"""Tags on definitions, and on whatever else carries some: what is granted over a tag is granted over its carriers."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from ..access import change_signals
from ..access.access_types import EVENT_HANDLER, TASK_DEF, WEBHOOK, WORKFLOW_DEF
from ..core.errors import Invalid, NotFound
from ..models import EventHandler, Tag, TaskDefinition, Webhook, WorkflowDefinition
from . import definitions
from .access.access_audit import record_access_change

Document = dict[str, Any]
METADATA, RATE_LIMIT = "METADATA", "RATE_LIMIT"
LONGEST = 128
KEPT = {
    WORKFLOW_DEF: (WorkflowDefinition, "name", "workflow_definition"),
    TASK_DEF: (TaskDefinition, "name", "task_definition"),
    EVENT_HANDLER: (EventHandler, "name", "event_handler"),
    WEBHOOK: (Webhook, "pk", "webhook"),
}
"""Where the carriers of tags are kept, what finds them there, and what the audit calls them."""


def list_tags(target: str, name: str) -> list[Document]:
    """What a definition carries; a workflow's rate limit shows as a tag. Raises NotFound."""
    _refuse_unknown(target, name)
    found = metadata_tags(target, name)
    config = rate_limit(name) if target == WORKFLOW_DEF else None
    if config:
        found.append({"key": config["rateLimitKey"], "value": config["concurrentExecLimit"], "type": RATE_LIMIT})
    return found


def metadata_tags(target: str, name: str) -> list[Document]:
    """The tags of anything, without limits."""
    rows = Tag.objects.filter(object_type=target, object_name=name).order_by("key", "value")
    return [{"key": row.key, "value": row.value, "type": METADATA} for row in rows]


def tags_by_name(target: str, names: Iterable[str]) -> dict[str, list[Document]]:
    """Return the tags of several things of one kind by name, in one statement; names without tags are left out."""
    rows = Tag.objects.filter(object_type=target, object_name__in=list(names)).order_by("key", "value")
    found: dict[str, list[Document]] = {}
    for row in rows:
        found.setdefault(row.object_name, []).append({"key": row.key, "value": row.value, "type": METADATA})
    return found


def all_tags() -> list[Document]:
    """Every tag that something carries, once."""
    rows = Tag.objects.order_by("key", "value").values_list("key", "value").distinct()
    return [{"key": key, "value": value, "type": METADATA} for key, value in rows]


def add_tags(target: str, name: str, tags: Iterable[Document], by: str) -> None:
    """Hang tags on a definition; a RATE_LIMIT is written into it. Raises NotFound, and Invalid for one too long."""
    with transaction.atomic():
        _refuse_unknown(target, name)
        for tag in tags:
            if tag["type"] == RATE_LIMIT:
                _write_rate_limit(
                    target,
                    name,
                    {"rateLimitKey": tag["key"], "concurrentExecLimit": _parse_whole_number(tag["value"])},
                    by,
                )
            else:
                _refuse_too_long(tag)
                Tag.objects.get_or_create(object_type=target, object_name=name, key=tag["key"], value=tag["value"])
        _record_change(target, name, "tag", by)


def remove_tags(target: str, name: str, tags: Iterable[Document], by: str) -> None:
    """Take tags off a definition; one that it does not carry does not matter. Raises NotFound."""
    with transaction.atomic():
        _refuse_unknown(target, name)
        for tag in tags:
            if tag["type"] == RATE_LIMIT:
                _write_rate_limit(target, name, None, by)
            else:
                Tag.objects.filter(object_type=target, object_name=name, key=tag["key"], value=tag["value"]).delete()
        _record_change(target, name, "tag", by)


def set_tags(target: str, name: str, tags: list[Document], by: str) -> None:
    """Give a definition these tags and no others; its limit goes on unless it is among them. Raises NotFound."""
    with transaction.atomic():
        _refuse_unknown(target, name)
        kept = {(tag["key"], tag["value"]) for tag in tags if tag["type"] != RATE_LIMIT}
        gone = [tag for tag in metadata_tags(target, name) if (tag["key"], tag["value"]) not in kept]
        remove_tags(target, name, gone, by)
        add_tags(target, name, tags, by)


def mirror_tags(target: str, name: str, tags: Iterable[Document]) -> None:
    """Note what a thing carries that keeps its tags itself, so that grants over tags reach it too."""
    Tag.objects.filter(object_type=target, object_name=name).delete()
    Tag.objects.bulk_create(
        [
            Tag(object_type=target, object_name=name, key=tag["key"], value=tag["value"])
            for tag in tags
            if len(tag["key"]) <= LONGEST and len(tag["value"]) <= LONGEST
        ],
        ignore_conflicts=True,
    )
    # Rows that are written in bulk send no word of themselves.
    change_signals.record_access_change()


def rate_limit(name: str) -> Document | None:
    """The limit of a workflow's newest version, or None. Raises NotFound."""
    row = WorkflowDefinition.objects.filter(name=name).order_by("-version").first()
    if row is None:
        raise NotFound(f"No such workflow found by name: {name}")
    return row.document.get("rateLimitConfig") if row.concurrent_limit else None


def set_rate_limit(name: str, config: Document | None, by: str) -> None:
    """Write a limit into all versions of a workflow, or take it out. Raises NotFound, ValidationFailed."""
    with transaction.atomic():
        _refuse_unknown(WORKFLOW_DEF, name)
        for row in WorkflowDefinition.objects.select_for_update().filter(name=name).order_by("version"):
            document = {key: value for key, value in row.document.items() if key != "rateLimitConfig"}
            document |= {"rateLimitConfig": config} if config else {}
            if document != row.document:
                definitions.save_workflow(document, by, overwrite=True, reason="Its rate limit is changed.")


def _write_rate_limit(target: str, name: str, config: Document | None, by: str) -> None:
    if target != WORKFLOW_DEF:
        raise Invalid("A RATE_LIMIT tag is for workflows; a task has fields for its limits.")
    set_rate_limit(name, config, by)


def _parse_whole_number(value: str) -> int:
    if not (value.isascii() and value.isdigit() and 0 < int(value[:12]) < 2**31):
        raise Invalid(f"The value of a RATE_LIMIT tag is a number of workflows; it is '{value[:100]}'.")
    return int(value)


def _refuse_too_long(tag: Document) -> None:
    if max(len(tag["key"]), len(tag["value"])) > LONGEST:
        raise Invalid(f"The key and the value of a tag have up to {LONGEST} characters.")


def _refuse_unknown(target: str, name: str) -> None:
    if target not in KEPT:
        return
    model, column, kind = KEPT[target]
    if not model.objects.filter(**{column: name}).exists():
        raise NotFound(f"There is no {kind.replace('_', ' ')} named {name}.")


def _record_change(target: str, name: str, action: str, by: str) -> None:
    kind = KEPT[target][2] if target in KEPT else target.lower()
    record_access_change(
        kind, name, action, by, tags=[f"{tag['key']}:{tag['value']}" for tag in metadata_tags(target, name)]
    )
