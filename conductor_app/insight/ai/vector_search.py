"""Exact search for the documents whose embeddings are nearest to another one.

Documents are compared in pages, so that a search needs a bounded amount of memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

from django.db import connection

from ... import conf
from ...core.errors import Invalid
from ...models import VectorDocument
from ...models.vectors import COSINE, L2

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

    _require_size(request)
    query = numpy.asarray(request.embedding, dtype="<f4")
    best: list[tuple[float, int]] = []
    for ids, embeddings, norms in _pages(request):
        if any(len(each) != query.nbytes for each in embeddings):
            other = next(len(each) for each in embeddings if len(each) != query.nbytes) // 4
            raise Invalid(
                f"The embedding has {len(query)} numbers, but documents of the index {request.index} have {other}. "
                "Search with the model and the `dimensions` with which they were stored."
            )
        matrix = numpy.frombuffer(b"".join(embeddings), dtype="<f4").reshape(len(ids), -1)
        scores = _distances(numpy, matrix, numpy.asarray(norms), query, request.metric)
        count = min(request.count, len(ids))
        nearest = numpy.argpartition(scores, count - 1)[:count]
        best = nsmallest(request.count, [*best, *((float(scores[place]), ids[place]) for place in nearest)])
    documents = VectorDocument.objects.defer("embedding").in_bulk([id for _, id in best])
    return [FoundDocument(documents[id], score) for score, id in best if id in documents]


def _distances(numpy: Any, matrix: Any, norms: Any, query: Any, metric: str) -> Any:
    """Return the distance of each row of the matrix. A document or query of zeros has the cosine distance 1."""
    if metric == L2:
        return numpy.linalg.norm(matrix - query, axis=1)
    products = (matrix @ query).astype("<f8")
    if metric == COSINE:
        lengths = norms * float(numpy.linalg.norm(query.astype("<f8")))
        return 1 - numpy.divide(products, lengths, out=numpy.zeros_like(products), where=lengths > 0)
    return -products


def _require_size(request: VectorSearch) -> None:
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


def _pages(request: VectorSearch) -> Iterator[tuple[list[int], list[bytes], list[float]]]:
    """Yield ids, embeddings and norms in the order of the unique index."""
    condition, params = _condition(request)
    # Within one namespace, SQLite would read the pages before this one again for a comparison of both columns.
    columns = ("namespace", "document_id") if request.namespace is None else ("document_id",)
    after: list[Any] = []
    while True:
        position = f" AND ({', '.join(columns)}) > ({', '.join(['%s'] * len(columns))})" if after else ""
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT id, embedding, norm, namespace, document_id FROM conductor_vectordocument "
                f"WHERE {condition}{position} ORDER BY namespace, document_id LIMIT %s",
                [*params, *after, PAGE_ROWS],
            )
            rows = cursor.fetchall()
        if rows:
            yield [row[0] for row in rows], [bytes(row[1]) for row in rows], [row[2] for row in rows]
        if len(rows) < PAGE_ROWS:
            return
        after = list(rows[-1][-len(columns) :])


def _condition(request: VectorSearch) -> tuple[str, list[Any]]:
    params = [request.database, request.index]
    if request.namespace is None:
        return SAME_INDEX, params
    return f"{SAME_INDEX} AND namespace = %s", [*params, request.namespace]
