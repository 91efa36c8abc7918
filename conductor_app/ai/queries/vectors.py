"""Read the embeddings of an index in pages, so that a search needs a bounded amount of memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection

from ... import conf
from ...core.errors import Invalid
from ...models import VectorIndexVersion

PAGE_ROWS = 2_000
SAME_INDEX = 'database = %s AND "index" = %s'


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """A search. `namespace`: None for all namespaces of the index."""

    database: str
    index: str
    namespace: str | None
    metric: str
    embedding: Sequence[float]
    count: int


class VectorPage(NamedTuple):
    """Rows of an index. `matrix`: a row of 32-bit floats for each document. `norms`: their Euclidean norms."""

    ids: list[int]
    matrix: Any
    norms: list[float]


def read_version(request: VectorSearch) -> str:
    """Return the version of the index of a search; empty before its first write."""
    rows = VectorIndexVersion.objects.filter(database=request.database, index=request.index)
    return rows.values_list("version", flat=True).first() or ""


def require_size(request: VectorSearch) -> None:
    """Check that one search may compare the documents.

    Raises:
        Invalid: when there are more than AI_SEARCH_MAX_DOCUMENTS.
    """
    most = conf.ai_search_max_documents
    condition, params = _condition(request)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT COUNT(*) FROM (SELECT 1 FROM conductor_vectordocument WHERE {condition} LIMIT %s) AS found",
            [*params, most + 1],
        )
        [count] = cursor.fetchone()
    if count > most:
        raise Invalid(
            f"The index {request.index} has more than {most} documents, the maximum of one search "
            "(AI_SEARCH_MAX_DOCUMENTS). Search one namespace, or split the index into namespaces."
        )


def read_pages(request: VectorSearch) -> Iterator[VectorPage]:
    """Yield the documents in the order of the unique index.

    Raises:
        Invalid: when embeddings have another length than that of the search.
    """
    import numpy

    condition, params = _condition(request)
    # Within one namespace, SQLite would read the pages before this one again for a comparison of both columns.
    columns = ("namespace", "document_id") if request.namespace is None else ("document_id",)
    after: list[Any] = []
    while True:
        position = f" AND ({', '.join(columns)}) > ({', '.join(['%s'] * len(columns))})" if after else ""
        rows = _fetch(
            f"SELECT id, embedding, norm, namespace, document_id FROM conductor_vectordocument "
            f"WHERE {condition}{position} ORDER BY namespace, document_id LIMIT %s",
            [*params, *after, PAGE_ROWS],
        )
        if rows:
            embeddings = [row[1] for row in rows]
            _require_length(request, embeddings)
            matrix = numpy.frombuffer(b"".join(embeddings), dtype="<f4").reshape(len(rows), -1)
            yield VectorPage([row[0] for row in rows], matrix, [row[2] for row in rows])
        if len(rows) < PAGE_ROWS:
            return
        after = list(rows[-1][-len(columns) :])


def _fetch(sql: str, params: list[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a query. PostgreSQL sends them in its binary format, which has half the size of text."""
    if connection.vendor == "postgresql":
        from psycopg import Cursor

        connection.ensure_connection()
        with connection.wrap_database_errors, Cursor(connection.connection) as cursor:
            return cursor.execute(sql, params, binary=True).fetchall()
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def _require_length(request: VectorSearch, embeddings: Sequence[bytes]) -> None:
    expected = 4 * len(request.embedding)
    other = next((len(each) for each in embeddings if len(each) != expected), expected)
    if other != expected:
        raise other_length(request, other // 4)


def other_length(request: VectorSearch, length: int) -> Invalid:
    """Return the error of a search whose documents have another length."""
    return Invalid(
        f"The embedding has {len(request.embedding)} numbers, but documents of the index {request.index} have "
        f"{length}. Search with the model and the `dimensions` with which they were stored."
    )


def _condition(request: VectorSearch) -> tuple[str, list[Any]]:
    params = [request.database, request.index]
    if request.namespace is None:
        return SAME_INDEX, params
    return f"{SAME_INDEX} AND namespace = %s", [*params, request.namespace]
