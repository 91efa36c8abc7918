"""Commands on indexes of documents with embeddings, in the table `VectorDocument`: store, replace and delete."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from ...access import audit
from ...core.errors import Invalid, NotFound
from ...db.database import transaction
from ...db.fields import strip_nul
from ...utils import clock
from ..models import COSINE, INNER_PRODUCT, L2, METRICS, Integration, VectorDocument, vector_length

BUILT_IN = ("default", "postgres", "pgvectordb")
"""The names that need no integration: they mean the table of this server, with the default metric."""
KINDS = ("postgres", "pgvectordb")
"""The kinds of integrations whose documents this server stores in its own table."""
METRIC_NAMES = {"l2": L2, "cosine": COSINE, "inner_product": INNER_PRODUCT}
MAX_DIMENSIONS = 16_384
MAX_NAME_LENGTH = 255
WRITTEN_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class VectorDatabase:
    """A database of vectors. `dimensions`: the length of its vectors; None if the first document determines it."""

    name: str
    metric: str = L2
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where documents are stored."""

    database: str
    index: str
    namespace: str

    def rows(self) -> QuerySet[VectorDocument]:
        return VectorDocument.objects.filter(database=self.database, index=self.index, namespace=self.namespace)


@dataclass(frozen=True, slots=True)
class Document:
    """A document to store."""

    id: str
    embedding: Sequence[float]
    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parent_id: str = ""


def vector_database(name: str) -> VectorDatabase:
    """Return the settings of a database of vectors.

    Raises:
        NotFound: when there is no such integration.
        Invalid: when it is disabled, of another kind, or has an invalid setting.
    """
    row = Integration.objects.filter(pk=name).first()
    if row is None:
        if name in BUILT_IN:
            return VectorDatabase(name)
        raise NotFound(f"VectorDB not found: {name[:MAX_NAME_LENGTH]}")
    if not row.is_enabled:
        raise Invalid(f"The integration {name} is disabled. Enable it on its page.")
    if row.kind not in KINDS:
        raise Invalid(
            f"The integration {name} is of the kind {row.kind}. This server stores vectors in its own database: use an "
            f"integration of the kind pgvectordb, or the name `default`."
        )
    return VectorDatabase(name, _metric(name, row.configuration), _dimensions(name, row.configuration))


def store_documents(place: Place, documents: Sequence[Document], dimensions: int | None = None) -> int:
    """Insert or replace documents by id, in one transaction. Returns their number.

    `dimensions`: the length that their embeddings must have; None for that of the documents in the namespace.

    Raises:
        Invalid: when a name is invalid, or an embedding has another length.
    """
    with transaction.atomic():
        return _write(place, documents, dimensions)


def replace_parts(place: Place, parent_id: str, documents: Sequence[Document], dimensions: int | None = None) -> int:
    """Store the parts of a document, and delete its earlier parts. Returns the number of parts.

    Raises:
        Invalid: when a name is invalid, or an embedding has another length.
    """
    with transaction.atomic():
        place.rows().filter(parent_id=parent_id).exclude(document_id__in=[each.id for each in documents]).delete()
        return _write(place, documents, dimensions)


def delete_index(place: Place, by: str) -> int:
    """Delete the documents of a namespace of an index. Returns their number."""
    with transaction.atomic():
        count = place.rows().delete()[0]
        if not count:
            raise NotFound(f"The index {place.index[:MAX_NAME_LENGTH]} has no documents in this namespace.")
        name = f"{place.database}/{place.index}/{place.namespace}"
        audit.record("vector index", name, "delete", by, facts={"count": count})
    return count


def pack_embedding(embedding: Sequence[float]) -> tuple[bytes, float]:
    """Return an embedding as little-endian 32-bit floats, and its Euclidean norm.

    Raises:
        Invalid: when it is empty or too long, or a value is not a finite 32-bit number.
    """
    import numpy

    if not 0 < len(embedding) <= MAX_DIMENSIONS:
        raise Invalid(f"An embedding must have 1 to {MAX_DIMENSIONS} numbers (got {len(embedding)}).")
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in embedding):
        raise Invalid("An embedding must be a list of numbers.")
    try:
        with numpy.errstate(over="ignore"):
            vector = numpy.asarray([float(value) for value in embedding], dtype="<f4")
        is_finite = bool(numpy.isfinite(vector).all())
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise Invalid("An embedding must be a list of finite numbers.")
    return vector.tobytes(), float(numpy.linalg.norm(vector.astype("<f8")))


def _write(place: Place, documents: Sequence[Document], dimensions: int | None) -> int:
    _check_names(place, documents)
    rows, now = [], clock.now()
    expected = dimensions or _stored_dimensions(place)
    for document in documents:
        embedding, norm = pack_embedding(document.embedding)
        expected = expected or len(document.embedding)
        if (length := len(document.embedding)) != expected:
            raise Invalid(
                f"The embedding of {document.id!r} has {length} numbers, but those of the namespace "
                f"{place.namespace!r} have {expected}. Use the same model and `dimensions` for all."
            )
        rows.append(
            VectorDocument(
                database=place.database,
                index=place.index,
                namespace=place.namespace,
                document_id=document.id,
                parent_id=document.parent_id,
                text=strip_nul(document.text),
                metadata=dict(document.metadata),
                embedding=embedding,
                norm=norm,
                updated_at=now,
            )
        )
    # Sorted, so that parallel transactions lock rows in one order.
    VectorDocument.objects.bulk_create(
        sorted(rows, key=lambda row: row.document_id),
        batch_size=WRITTEN_AT_ONCE,
        update_conflicts=True,
        unique_fields=["database", "index", "namespace", "document_id"],
        update_fields=["parent_id", "text", "metadata", "embedding", "norm", "updated_at"],
    )
    return len(rows)


def _stored_dimensions(place: Place) -> int | None:
    """Return the length of the embeddings in a namespace, or None if it is empty."""
    length = place.rows().values_list(vector_length(), flat=True).first()
    return length // 4 if length else None


def _check_names(place: Place, documents: Iterable[Document]) -> None:
    names = {"vectorDB": place.database, "index": place.index, "namespace": place.namespace}
    for field_name, value in (*names.items(), *(("docId", document.id) for document in documents)):
        if len(value) > MAX_NAME_LENGTH or "\0" in value:
            raise Invalid(f"`{field_name}` must have at most {MAX_NAME_LENGTH} characters, without NUL.")


def _metric(name: str, configuration: Mapping[str, Any]) -> str:
    given = configuration.get("distanceMetric") or L2
    metric = METRIC_NAMES.get(str(given).lower())
    if metric is None:
        raise Invalid(f"`distanceMetric` of the integration {name} must be one of: {', '.join(METRICS)}.")
    return metric


def _dimensions(name: str, configuration: Mapping[str, Any]) -> int | None:
    given = configuration.get("dimensions")
    if given in (None, ""):
        return None
    if not str(given).isdecimal() or not 0 < int(given) <= MAX_DIMENSIONS:
        raise Invalid(f"`dimensions` of the integration {name} must be 1 to {MAX_DIMENSIONS}.")
    return int(given)
