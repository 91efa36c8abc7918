"""Exact search for the documents whose embeddings are nearest to another one, and the list of indexes.

A search reads the embeddings in pages and compares them with numpy. It keeps nothing for the next one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any, NamedTuple

from django.db.models import Count, F, Max, Sum
from django.db.models.functions import Length

from ...core.errors import Invalid
from ...db.database import connection
from ...settings import conf
from ..models import COSINE, L2, VectorDocument, vector_length

PAGE_ROWS = 2_000
SAME_INDEX = 'database = %s AND "index" = %s'
MAX_INDEXES = 200


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """A search. `namespace`: None for all namespaces of the index."""

    database: str
    index: str
    namespace: str | None
    metric: str
    embedding: Sequence[float]
    count: int


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document with its distance from the embedding that was searched."""

    document: VectorDocument
    score: float


def search_documents(request: VectorSearch) -> list[FoundDocument]:
    """Return the nearest documents, the nearest first.

    Raises:
        Invalid: when the embeddings have another length, or there are more documents than one search compares.
    """
    import numpy

    query = numpy.asarray(request.embedding, dtype="<f4")
    require_size(request)
    best: list[tuple[float, int]] = []
    for page in read_pages(request):
        distances = _distances(numpy, page.matrix, numpy.asarray(page.norms), query, request.metric)
        count = min(request.count, len(page.ids))
        nearest = numpy.argpartition(distances, count - 1)[:count]
        best = nsmallest(request.count, [*best, *((float(distances[place]), page.ids[place]) for place in nearest)])
    documents = VectorDocument.objects.defer("embedding").in_bulk([id for _, id in best])
    return [FoundDocument(documents[id], score) for score, id in best if id in documents]


def _distances(numpy: Any, matrix: Any, norms: Any, query: Any, metric: str) -> Any:
    """Return the distance of each row of the matrix. A document or query of zeros has the cosine distance 1."""
    if metric == L2:
        return numpy.linalg.norm(matrix - query, axis=1)
    products = numpy.einsum("ij,j->i", matrix, query).astype("<f8")
    if metric == COSINE:
        lengths = norms * float(numpy.linalg.norm(query.astype("<f8")))
        return 1 - numpy.divide(products, lengths, out=numpy.zeros_like(products), where=lengths > 0)
    return -products


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """One namespace of an index. `size`: bytes of embeddings and texts. `dimensions`: of its largest embedding."""

    database: str
    index: str
    namespace: str
    documents: int
    size: int
    dimensions: int
    updated_at: int


def list_indexes() -> list[VectorIndex]:
    """Return the namespaces of the indexes with the most documents."""
    grouped = (
        VectorDocument.objects.order_by()
        .values("database", "index", "namespace")
        .annotate(
            documents=Count("pk"),
            size=Sum(vector_length() + Length(F("text"))),
            longest=Max(vector_length()),
            changed_at=Max("updated_at"),
        )
    )
    return [
        VectorIndex(
            row["database"],
            row["index"],
            row["namespace"],
            row["documents"],
            row["size"] or 0,
            (row["longest"] or 0) // 4,
            row["changed_at"],
        )
        for row in grouped.order_by("-documents", "database", "index", "namespace")[:MAX_INDEXES]
    ]


class VectorPage(NamedTuple):
    """Rows of an index. `matrix`: a row of 32-bit floats for each document. `norms`: their Euclidean norms."""

    ids: list[int]
    matrix: Any
    norms: list[float]


def require_size(request: VectorSearch) -> None:
    """Raise Invalid if there are more documents than AI_SEARCH_MAX_DOCUMENTS."""
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
    """Yield the documents in the order of the unique index."""
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
