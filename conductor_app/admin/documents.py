"""Payloads on a page: small ones as trees, large ones as links to files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, F, Model, QuerySet, When
from django.http import HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from ..models.fields import DocumentField, dumps
from .badges import format_size
from .json_tree import render_tree

MAX_INLINE_BYTES = 64_000
"""Payloads larger than this number of bytes are not loaded for a page."""


@dataclass(frozen=True, slots=True)
class PayloadDocument:
    """One payload: its name, its size, and its tree unless it is large."""

    name: str
    size: str
    tree: SafeString | None
    is_empty: bool

    @property
    def label(self) -> str:
        """Return the label of the payload."""
        return payload_label(self.name)


PAYLOAD_LABELS = {
    "input": gettext_lazy("Input"),
    "output": gettext_lazy("Output"),
    "variables": gettext_lazy("Variables"),
}


def payload_label(name: str) -> str:
    """Return the label of a payload on pages."""
    return str(PAYLOAD_LABELS.get(name, name.capitalize()))


def annotate_documents(rows: QuerySet, names: Sequence[str]) -> QuerySet:
    """Annotate rows with their small payloads, so that one query loads both."""
    return rows.annotate(**{f"small_{name}": _inline_value(name) for name in names})


def _inline_value(name: str) -> Case:
    return Case(When(**{f"{name}_size__lte": MAX_INLINE_BYTES}, then=F(name)), output_field=DocumentField(null=True))


def payload_documents(row: Model, names: Sequence[str]) -> list[PayloadDocument]:
    """Return the payloads of a row that `annotate_documents` has prepared."""
    return [_build_document(name, getattr(row, f"{name}_size"), getattr(row, f"small_{name}")) for name in names]


def _build_document(name: str, bytes: int, value: Any) -> PayloadDocument:
    is_small = bytes <= MAX_INLINE_BYTES
    return PayloadDocument(
        name, format_size(bytes), render_tree(value) if is_small else None, is_small and value in ({}, [], None)
    )


def json_file_response(document: Any, name: str) -> HttpResponse:
    """Return a JSON value as a file to download."""
    safe = "".join(character if character.isalnum() or character in "-_." else "_" for character in name)
    headers = {"Content-Disposition": f'attachment; filename="{safe}.json"'}
    return HttpResponse(dumps(document), content_type="application/json", headers=headers)
