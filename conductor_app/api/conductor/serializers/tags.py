"""Tags, as clients hang them on things: a key and a value."""

from typing import Any

from django.http import HttpRequest

from ....core.document.checks.fields import FieldSpec, FieldTable, read_document
from ....core.document.checks.values import DocumentPosition, read_text
from ....core.errors import ValidationFailed
from .. import request_body

TAG: FieldTable = (
    FieldSpec("key", read_text),
    FieldSpec("value", read_text, ""),
    FieldSpec("type", read_text, "METADATA"),
)
MOST = 1_000


def tags(given: Any, place: DocumentPosition) -> list[dict[str, Any]]:
    """Tags, each once."""
    if not isinstance(given, list) or len(given) > MOST or not all(isinstance(each, dict) for each in given):
        place.add_error(f"tags must be a list of at most {MOST} objects with a key and a value")
        return []
    read = [_tag(each, place.at(f"[{number}]")) for number, each in enumerate(given)]
    return list({(tag["key"], tag["value"]): tag for tag in read}.values())


def _tag(given: dict[str, Any], place: DocumentPosition) -> dict[str, Any]:
    read = read_document(given, TAG, place)
    if not read.get("key"):
        place.at("key").add_missing("A tag needs a key")
    return {name: read.get(name, "") for name in ("key", "value", "type")}


def sent_tags(request: HttpRequest) -> list[dict[str, Any]]:
    """The tags in a request's body: a list, or a single one. Raises ValidationFailed."""
    given, place = request_body.read_json(request), DocumentPosition("tags")
    read = tags([given] if isinstance(given, dict) else given, place)
    if place.complaints:
        raise ValidationFailed(place.complaints)
    return read


def without(kept: list[dict[str, Any]], removed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tags without those with the same key and value."""
    gone = {(tag["key"], tag["value"]) for tag in removed}
    return [tag for tag in kept if (tag["key"], tag["value"]) not in gone]
