"""Tags of objects. A grant on a tag applies to all objects that have the tag."""

from collections.abc import Iterable
from typing import Any

from ..core.errors import Invalid
from .audit import announce_access_change
from .grants import require_tag
from .models import Tag

Document = dict[str, Any]
Tags = list[Document]
METADATA, RATE_LIMIT = "METADATA", "RATE_LIMIT"
MAX_LENGTH = 128


def metadata_tags(target: str, name: str) -> list[Document]:
    """Return the stored tags of an object, without rate limits."""
    rows = Tag.objects.filter(object_type=target, object_name=name).order_by("key", "value")
    return [{"key": row.key, "value": row.value, "type": METADATA} for row in rows]


def tags_by_name(target: str, names: Iterable[str]) -> dict[str, list[Document]]:
    """Return the tags of several objects of one kind by name, in one query. Names without tags are omitted."""
    rows = Tag.objects.filter(object_type=target, object_name__in=list(names)).order_by("key", "value")
    found: dict[str, list[Document]] = {}
    for row in rows:
        found.setdefault(row.object_name, []).append({"key": row.key, "value": row.value, "type": METADATA})
    return found


def all_tags() -> list[Document]:
    """Return all distinct tags."""
    rows = Tag.objects.order_by("key", "value").values_list("key", "value").distinct()
    return [{"key": key, "value": value, "type": METADATA} for key, value in rows]


def require_valid_tag(tag: Document) -> None:
    """Check the length of a tag.

    Raises:
        Invalid: when the key or the value is too long.
    """
    if max(len(tag["key"]), len(tag["value"])) > MAX_LENGTH:
        raise Invalid(f"The key and the value of a tag must have at most {MAX_LENGTH} characters.")


def mirror_tags(target: str, name: str, tags: Iterable[Document]) -> None:
    """Copy the tags of an object that stores them itself, so that grants on tags apply to it.

    Raises:
        Forbidden: when a grant on one of them gives accesses that the current actor does not have.
    """
    tags = [tag for tag in tags if len(tag["key"]) <= MAX_LENGTH and len(tag["value"]) <= MAX_LENGTH]
    present = set(Tag.objects.filter(object_type=target, object_name=name).values_list("key", "value"))
    for tag in tags:
        if (tag["key"], tag["value"]) not in present:
            require_tag(target, name, tag["key"], tag["value"])
    Tag.objects.filter(object_type=target, object_name=name).delete()
    Tag.objects.bulk_create(
        [Tag(object_type=target, object_name=name, key=tag["key"], value=tag["value"]) for tag in tags],
        ignore_conflicts=True,
    )
    # `bulk_create` sends no signals.
    announce_access_change()
