"""Exact search for the documents whose embeddings are nearest to another one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from typing import Any

from ...models import VectorDocument
from ...models.vectors import COSINE, L2
from .compact_vectors import CompactPage, candidates, compact
from .vector_cache import cached_vectors
from .vector_pages import VectorSearch, other_length, read_pages, read_version, require_size

MAX_CANDIDATES = 5_000
"""The documents that are read one by one. If more may be among the nearest, all are compared."""
READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document with its distance from the embedding that was searched."""

    document: VectorDocument
    score: float


def search_documents(request: VectorSearch) -> list[FoundDocument]:
    """Return the nearest documents, the nearest first.

    The process keeps what it has read in a compact form, which determines the few documents that may be the nearest.
    Only these are compared exactly.

    Raises:
        Invalid: when the embeddings have another length, or there are more documents than one search compares.
    """
    import numpy

    query = numpy.asarray(request.embedding, dtype="<f4")
    # Read before the documents: if they change meanwhile, the next search reads them again.
    key = (request.database, request.index, request.namespace)
    vectors = cached_vectors(key, read_version(request), partial(_load, request))
    if vectors is None:
        best = _compare_all(request, query)
    else:
        if vectors.dimensions not in (0, len(query)):
            raise other_length(request, vectors.dimensions)
        ids = list(candidates(vectors.pages, query, request.metric, request.count))
        few = len(ids) <= MAX_CANDIDATES
        best = _compare_some(request, query, ids) if few else _compare_all(request, query)
    documents = VectorDocument.objects.defer("embedding").in_bulk([id for _, id in best])
    return [FoundDocument(documents[id], score) for score, id in best if id in documents]


def _load(request: VectorSearch) -> Iterator[CompactPage]:
    require_size(request)
    return map(compact, read_pages(request))


Scores = list[tuple[float, int]]


def _compare_all(request: VectorSearch, query: Any) -> Scores:
    require_size(request)
    best: Scores = []
    for page in read_pages(request):
        best = _nearest(request, [*best, *_score(request, query, *page)])
    return best


def _compare_some(request: VectorSearch, query: Any, ids: Sequence[int]) -> Scores:
    import numpy

    best: Scores = []
    for begin in range(0, len(ids), READ_AT_ONCE):
        rows = VectorDocument.objects.filter(pk__in=ids[begin : begin + READ_AT_ONCE])
        found = [row for row in rows.values_list("pk", "embedding", "norm") if len(row[1]) == query.nbytes]
        if found:
            matrix = numpy.frombuffer(b"".join(bytes(row[1]) for row in found), dtype="<f4").reshape(len(found), -1)
            scores = _score(request, query, [row[0] for row in found], matrix, [row[2] for row in found])
            best = _nearest(request, [*best, *scores])
    return best


def _nearest(request: VectorSearch, scores: Scores) -> Scores:
    return nsmallest(request.count, scores)


def _score(request: VectorSearch, query: Any, ids: Sequence[int], matrix: Any, norms: Sequence[float]) -> Scores:
    """Return the nearest of some documents, with their distances."""
    import numpy

    distances = _distances(numpy, matrix, numpy.asarray(norms), query, request.metric)
    count = min(request.count, len(ids))
    return [(float(distances[place]), ids[place]) for place in numpy.argpartition(distances, count - 1)[:count]]


def _distances(numpy: Any, matrix: Any, norms: Any, query: Any, metric: str) -> Any:
    """Return the distance of each row of the matrix. A document or query of zeros has the cosine distance 1."""
    if metric == L2:
        return numpy.linalg.norm(matrix - query, axis=1)
    products = numpy.einsum("ij,j->i", matrix, query).astype("<f8")
    if metric == COSINE:
        lengths = norms * float(numpy.linalg.norm(query.astype("<f8")))
        return 1 - numpy.divide(products, lengths, out=numpy.zeros_like(products), where=lengths > 0)
    return -products
