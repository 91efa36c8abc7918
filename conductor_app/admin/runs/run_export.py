"""Export of the list of runs: streamed as CSV or JSON, with the filters of the list."""

import csv
from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, StreamingHttpResponse

from ...insight.keyset_pages import SortColumn, iterate_pages
from ...insight.runs.cause import failure_reasons
from ...models import Run
from ...models.fields import dumps
from ...models.snapshots import read_snapshot
from ..badges import machine_time

EXPORT_COLUMNS = (
    "id", "definition", "version", "status", "correlation_id", "started_at", "ended_at", "duration_ms", "started_by",
    "parent_id", "failed_task", "reason",
)  # fmt: skip
CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet evaluate a cell as a formula."""


class CsvBuffer:
    """File that returns the written text, for `csv.writer`."""

    def write(self, text: str) -> str:
        return text


def export_runs(request: HttpRequest, runs: QuerySet[Run], sort: SortColumn, format: str) -> StreamingHttpResponse:
    """Stream the runs as `csv` or `json`.

    Raises:
        Http404: when the format is unknown.
    """
    if format not in CONTENT_TYPES:
        raise Http404
    lines = _json_lines(runs, sort) if format == "json" else _csv_lines(runs, sort)
    kind = CONTENT_TYPES[format]
    headers = {"Content-Disposition": f'attachment; filename="runs.{format}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(lines, content_type=kind, headers=headers)


def _export_rows(runs: QuerySet[Run], sort: SortColumn) -> Iterator[dict[str, Any]]:
    pages = iterate_pages(runs, sort)
    while True:
        # One snapshot per page: the client decides how long the download takes.
        with read_snapshot():
            page = next(pages, [])
            failed = failure_reasons(page)
        if not page:
            return
        for run in page:
            yield _export_row(run, *failed.get(run.pk, ("", run.reason)))


def _export_row(run: Run, task: str, reason: str) -> dict[str, Any]:
    took = None if run.ended_at is None else run.ended_at - run.created_at
    values = (
        run.pk, run.name, run.version, run.status, run.correlation_id, machine_time(run.created_at),
        machine_time(run.ended_at),
        took, run.started_by, run.parent_id, task, reason,
    )  # fmt: skip
    return dict(zip(EXPORT_COLUMNS, values, strict=True))


def _csv_lines(runs: QuerySet[Run], sort: SortColumn) -> Iterator[str]:
    writer = csv.writer(CsvBuffer())
    yield writer.writerow(EXPORT_COLUMNS)
    for row in _export_rows(runs, sort):
        yield writer.writerow([escape_formula(value) for value in row.values()])


def escape_formula(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_PREFIXES) else value


def _json_lines(runs: QuerySet[Run], sort: SortColumn) -> Iterator[str]:
    """Yield a JSON list, one run per line."""
    separator = "[\n"
    for row in _export_rows(runs, sort):
        yield separator + dumps(row)
        separator = ",\n"
    yield "\n]\n" if separator == ",\n" else "[]\n"
