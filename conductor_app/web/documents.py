"""Documents on a page: lines of logs, JSON values as trees, large payloads as links, and tables as CSV."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, F, Model, QuerySet, When
from django.http import HttpResponse, StreamingHttpResponse
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy

from ..core.primitives import JsonValue
from ..db.fields import DocumentField, dumps
from .badges import format_size

CONTROL_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colors, styles and movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links and other strings for the terminal
    r"|\x1b[ -/]*[0-Z\\`-~]?"  # character sets and truncated sequences
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Sequences for terminals, which pages leave out, and bidirectional marks, which can reorder what a line shows."""


OPEN_LEVELS = 2
MAX_CHILDREN = 100
MAX_CHARACTERS = 2_000
MAX_NODES = 1_500
MAX_DEPTH = 30
MAX_INLINE_BYTES = 64_000
"""Payloads larger than this number of bytes are not loaded for a page."""
PAYLOAD_LABELS = {
    "input": gettext_lazy("Input"),
    "output": gettext_lazy("Output"),
    "variables": gettext_lazy("Variables"),
}
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet evaluate a cell as a formula."""


def clean_log(text: str) -> str:
    """Return the text of a log without control sequences, and without what a progress bar has overwritten."""
    lines = text.replace("\r\n", "\n").rstrip("\r\n").split("\n")
    return CONTROL_SEQUENCE.sub("", "\n".join(line.rsplit("\r", 1)[-1] for line in lines))


def mark_matches(text: str, find: str) -> SafeString:
    """Return the text as HTML, with matches of `find` highlighted."""
    if not find:
        return escape(text)
    parts = re.split(f"({re.escape(find)})", text, flags=re.IGNORECASE)
    parts[1::2] = [format_html("<mark>{}</mark>", hit) for hit in parts[1::2]]
    return mark_safe("".join(map(conditional_escape, parts)))


def render_tree(value: JsonValue) -> SafeString:
    """Return the value as HTML."""
    return mark_safe(f'<div class="json">{"".join(_TreeRenderer().render_node(value, "", 0))}</div>')


class _TreeRenderer:
    """Renderer of one tree, with the number of nodes that it may still render."""

    def __init__(self) -> None:
        self.remaining_nodes = MAX_NODES

    def render_node(self, value: JsonValue, name: str, depth: int) -> Iterator[str]:
        self.remaining_nodes -= 1
        if isinstance(value, dict | list) and value:
            yield from self._render_branch(value, name, depth)
        else:
            yield f'<div class="leaf">{name}{_render_leaf(value)}</div>'

    def _render_branch(self, value: dict | list, name: str, depth: int) -> Iterator[str]:
        shape = f"{{{len(value)}}}" if isinstance(value, dict) else f"[{len(value)}]"
        yield f"<details{' open' if depth < OPEN_LEVELS else ''}><summary>{name}<i>{shape}</i></summary><div>"
        yield from self._render_children(value, depth + 1)
        yield "</div></details>"

    def _render_children(self, value: dict | list, depth: int) -> Iterator[str]:
        if depth > MAX_DEPTH:
            yield _render_more("deeper levels")
            return
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for number, (key, child) in enumerate(pairs):
            if number == MAX_CHILDREN or self.remaining_nodes <= 0:
                yield _render_more(f"{len(value) - number} more")
                return
            yield from self.render_node(child, f"<b>{escape(_shorten(str(key)))}</b>", depth)


def _render_leaf(value: JsonValue) -> str:
    if isinstance(value, str):
        return f'<span class="text">{escape(_shorten(json.dumps(value, ensure_ascii=False)))}</span>'
    if value is None or isinstance(value, bool):
        return f'<span class="word">{json.dumps(value)}</span>'
    if isinstance(value, dict | list):
        return f'<span class="word">{"{}" if isinstance(value, dict) else "[]"}</span>'
    return f'<span class="number">{escape(_shorten(str(value)))}</span>'


def _shorten(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}… ({len(text) - MAX_CHARACTERS:,} more characters)"


def _render_more(content: str) -> str:
    return f'<div class="leaf muted">… {content}; open the raw document to see everything</div>'


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


def _build_document(name: str, bytes: int, value: JsonValue) -> PayloadDocument:
    is_small = bytes <= MAX_INLINE_BYTES
    return PayloadDocument(
        name, format_size(bytes), render_tree(value) if is_small else None, is_small and value in ({}, [], None)
    )


def json_file_response(document: JsonValue, name: str) -> HttpResponse:
    """Return a JSON value as a file to download."""
    safe = "".join(character if character.isalnum() or character in "-_." else "_" for character in name)
    headers = {"Content-Disposition": f'attachment; filename="{safe}.json"'}
    return HttpResponse(dumps(document), content_type="application/json", headers=headers)


EXPORT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
"""The content type of each format in which rows can be downloaded."""


def download_rows(
    name: str, format: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> StreamingHttpResponse:
    """Stream rows with these columns as a file. `format`: `csv`, or `json` for a list with one row per line."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.{format}"', "Cache-Control": "no-store"}
    lines = _json_lines(rows) if format == "json" else _csv_lines(columns, rows)
    return StreamingHttpResponse(lines, content_type=EXPORT_TYPES[format], headers=headers)


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    separator = "[\n"
    for row in rows:
        yield f"{separator}{dumps(row)}"
        separator = ",\n"
    yield "\n]\n" if separator == ",\n" else "[]\n"


def _csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    writer = csv.writer(_TextBuffer())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_csv_value(value) for value in row.values()])


class _TextBuffer:
    """File that returns the written text, for `csv.writer`."""

    def write(self, text: str) -> str:
        return text


def _csv_value(value: object) -> object:
    text = dumps(value) if isinstance(value, dict) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA_PREFIXES) else text
