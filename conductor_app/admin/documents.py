"""Payloads on a page: small ones as trees, large ones as files to open."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Model
from django.http import HttpResponse
from django.utils.safestring import SafeString

from ..models.fields import dumps
from .json_tree import tree
from .marks import size

LARGE = 64_000
"""Payloads above this many bytes are not read for a page."""


@dataclass(frozen=True, slots=True)
class Document:
    """One payload: its name, its size, and its tree unless it is large."""

    name: str
    size: str
    tree: SafeString | None
    is_empty: bool


def documents(row: Model, names: Sequence[str]) -> list[Document]:
    """The payloads of a row that was read without them; all small ones in one query."""
    sizes = {name: getattr(row, f"{name}_size") for name in names}
    small = [name for name in names if sizes[name] <= LARGE]
    found = type(row)._default_manager.filter(pk=row.pk).values(*small).first() if small else None
    return [_document(name, sizes[name], (found or {}).get(name), name in small) for name in names]


def _document(name: str, bytes: int, value: Any, is_small: bool) -> Document:
    return Document(name, size(bytes), tree(value) if is_small else None, is_small and value in ({}, [], None))


def as_file(document: Any, name: str) -> HttpResponse:
    """A JSON value to be kept."""
    safe = "".join(character if character.isalnum() or character in "-_." else "_" for character in name)
    headers = {"Content-Disposition": f'attachment; filename="{safe}.json"'}
    return HttpResponse(dumps(document), content_type="application/json", headers=headers)
