"""Parsing of tags, each with a key and a value."""

from typing import Any

from django.http import HttpRequest

from ....core.document.checks.document_fields import FieldSpec, FieldTable, read_document
from ....core.document.checks.values import DocumentPosition, read_text
from ....core.errors import ValidationFailed
from .. import request_body


def read_tag_value(value: Any, position: DocumentPosition) -> str:
    """Return the value of a tag. Numbers are read as texts; the tag of a limit is shown with a number."""
    return read_text(value, position)


TAG: FieldTable = (
    FieldSpec("key", read_text),
    FieldSpec("value", read_tag_value, ""),
    FieldSpec("type", read_text, "METADATA"),
)
MAX_TAGS = 1_000


def parse_tags(value: Any, position: DocumentPosition) -> list[dict[str, Any]]:
    """Return the tags without duplicates."""
    if not isinstance(value, list) or len(value) > MAX_TAGS or not all(isinstance(each, dict) for each in value):
        position.add_error(f"tags must be a list of at most {MAX_TAGS} objects with a key and a value")
        return []
    parsed = [_parse_tag(each, position.at(f"[{number}]")) for number, each in enumerate(value)]
    return list({(tag["key"], tag["value"]): tag for tag in parsed}.values())


def _parse_tag(value: dict[str, Any], position: DocumentPosition) -> dict[str, Any]:
    parsed = read_document(value, TAG, position)
    if not parsed.get("key"):
        position.at("key").add_missing("A tag needs a key")
    return {name: parsed.get(name, "") for name in ("key", "value", "type")}


def read_tags(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the tags in a request's body: a list, or a single one.

    Raises:
        ValidationFailed: when a tag is invalid.
    """
    value, position = request_body.read_json(request), DocumentPosition("tags")
    parsed = parse_tags([value] if isinstance(value, dict) else value, position)
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return parsed


def take_tags(document: Any) -> tuple[list[dict[str, Any]], bool] | None:
    """Remove the tags from the document of a definition, and return them and whether they replace the present ones.

    The Go SDK sends `tags` and `overwriteTags` inside definitions.

    Raises:
        ValidationFailed: when a tag is invalid.
    """
    overwrites = document.pop("overwriteTags", False) if isinstance(document, dict) else False
    value = document.pop("tags", None) if isinstance(document, dict) else None
    if value is None:
        return None
    position = DocumentPosition("tags")
    parsed = parse_tags(value, position)
    if position.validation_errors:
        raise ValidationFailed(position.validation_errors)
    return parsed, overwrites is True


def subtract_tags(existing: list[dict[str, Any]], removed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tags without those that have the key and value of a removed one."""
    removed_keys = {(tag["key"], tag["value"]) for tag in removed}
    return [tag for tag in existing if (tag["key"], tag["value"]) not in removed_keys]
