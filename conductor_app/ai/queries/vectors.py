"""Exact search for the documents whose embeddings are nearest to another one, and the list of indexes.

A process keeps the vectors of the indexes that it has searched, up to AI_SEARCH_CACHE_MB, as whole numbers from -127 to
127 and a scale. Their distance from the vector is known, and with it the greatest difference between a product with
them and one with the vector. So the `count` nearest documents are always among those whose least possible distance is
not above the greatest possible one of `count` others. Only these few are read and compared exactly.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from threading import Lock
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, F, Max, Sum
from django.db.models.functions import Length

from ...core.errors import Invalid
from ...settings import conf
from ...settings.table import MIB
from ...utils import process_state
from ...utils.process_state import Slot
from ..models import COSINE, L2, VectorDocument, VectorIndexVersion, vector_length

PAGE_ROWS = 2_000
SAME_INDEX = 'database = %s AND "index" = %s'
LARGEST = 127
ROUNDING = 2.0**-24
"""The relative rounding error of a 32-bit float."""
TINY = 1e-36
"""The scale below which the codes of a vector are 0: the range of 32-bit floats has no precision there."""
Key = tuple[str, str, str | None]
_changing, _loading = Lock(), Lock()
MAX_CANDIDATES = 5_000
"""The documents that are read one by one. If more may be among the nearest, all are compared."""
READ_AT_ONCE = 500
Scores = list[tuple[float, int]]
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


def list_indexes(database: str = "", index: str = "") -> list[VectorIndex]:
    """Return the namespaces of the indexes with the most documents. Empty names are those of all."""
    rows = VectorDocument.objects.order_by()
    rows = rows.filter(database=database) if database else rows
    rows = rows.filter(index=index) if index else rows
    grouped = rows.values("database", "index", "namespace").annotate(
        documents=Count("pk"),
        size=Sum(vector_length() + Length(F("text"))),
        longest=Max(vector_length()),
        changed_at=Max("updated_at"),
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


@dataclass(frozen=True, slots=True)
class CompactPage:
    """Documents of an index. `errors`: the distance of each vector from its scaled codes."""

    ids: Any
    codes: Any
    scales: Any
    norms: Any
    errors: Any

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return sum(each.nbytes for each in (self.ids, self.codes, self.scales, self.norms, self.errors))


def compact(page: VectorPage) -> CompactPage:
    """Return a page with one byte per number."""
    import numpy

    matrix, norms = page.matrix, numpy.asarray(page.norms)
    scales = numpy.maximum(matrix.max(axis=1), -matrix.min(axis=1)) / LARGEST
    is_tiny = scales < TINY
    scales[is_tiny] = 1
    scaled = matrix / scales[:, None]
    whole = numpy.rint(scaled)
    codes = whole.astype("i1")
    # In units of the scale, so that no square leaves the range of 32-bit floats.
    whole -= scaled
    errors = numpy.sqrt(numpy.einsum("ij,ij->i", whole, whole).astype("f8")) * scales
    errors[is_tiny] = norms[is_tiny]
    return CompactPage(numpy.asarray(page.ids), codes, scales, norms, errors)


def bounds(page: CompactPage, query: Any, metric: str) -> tuple[Any, Any]:
    """Return the least and the greatest possible distance of each document, for L2 its square."""
    import numpy

    wide = query.astype("f8")
    length = float(numpy.linalg.norm(wide))
    # Products with a vector of the length 1 cannot exceed the range of 32-bit floats.
    direction = (wide / length if length else wide).astype("f4")
    # Not with BLAS: it would start a thread per processor for each product, and let them spin.
    products = numpy.einsum("ij,j->i", page.codes.astype("f4"), direction) * (page.scales.astype("f8") * length)
    # The sum of n products of 32-bit floats has at most n rounding errors; the scale and the norms have a few more.
    slack = length * (page.errors + (len(query) + 8) * ROUNDING * (page.norms + page.errors))
    if metric == COSINE:
        lengths = page.norms * length
        has_length = lengths > 0
        cosines = numpy.divide(products, lengths, out=numpy.zeros_like(products), where=has_length)
        slack = numpy.divide(slack, lengths, out=numpy.zeros_like(slack), where=has_length)
        return 1 - cosines - slack, 1 - cosines + slack
    if metric == L2:
        squares = page.norms**2 + length**2
        slack = 2 * slack + 8 * ROUNDING * squares
        return squares - 2 * products - slack, squares - 2 * products + slack
    return -products - slack, -products + slack


def candidates(pages: list[CompactPage], query: Any, metric: str, count: int) -> Iterator[int]:
    """Yield the ids of all documents that may be among the nearest, in no order."""
    import numpy

    if not pages:
        return
    found = [bounds(page, query, metric) for page in pages]
    least = numpy.concatenate([each[0] for each in found])
    greatest = numpy.concatenate([each[1] for each in found])
    place = min(count, len(greatest)) - 1
    limit = numpy.partition(greatest, place)[place]
    ids = numpy.concatenate([page.ids for page in pages])
    yield from ids[least <= limit].tolist()


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """The vectors of one namespace, or of all of an index, as of a version. `dimensions`: 0 without documents."""

    version: str
    dimensions: int
    pages: list[CompactPage]

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return sum(page.size for page in self.pages)


_cached: Slot[OrderedDict[Key, CachedVectors]] = process_state.slot(OrderedDict)
"""The least recently used first."""


def cached_vectors(key: Key, version: str, load: Callable[[], Iterator[CompactPage]]) -> CachedVectors | None:
    """Return the vectors of a version, from the cache or loaded; None without a version or if they are too large.

    `load`: yields the pages. Only one thread at a time loads.
    """
    if (found := _find(key, version)) is not None:
        return found
    most = conf.ai_search_cache_mb * MIB
    if not most or not version:
        return None
    with _loading:
        if (found := _find(key, version)) is not None:
            return found
        pages, size = [], 0
        for page in load():
            pages.append(page)
            size += page.size
            if size > most:
                return None
        vectors = CachedVectors(version, pages[0].codes.shape[1] if pages else 0, pages)
        _keep(key, vectors, most)
        return vectors


def _find(key: Key, version: str) -> CachedVectors | None:
    with _changing:
        cached = _cached.value
        found = cached.get(key)
        if found is None or found.version != version:
            return None
        cached.move_to_end(key)
        return found


def _keep(key: Key, vectors: CachedVectors, most: int) -> None:
    cached = _cached.value
    with _changing:
        cached.pop(key, None)
        cached[key] = vectors
        size = sum(each.size for each in cached.values())
        while size > most:
            _, oldest = cached.popitem(last=False)
            size -= oldest.size


def _load(request: VectorSearch) -> Iterator[CompactPage]:
    require_size(request)
    return map(compact, read_pages(request))
