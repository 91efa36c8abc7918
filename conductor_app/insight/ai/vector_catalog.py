"""The indexes of vectors: their documents and sizes."""

from dataclasses import dataclass

from django.db.models import Count, F, Max, Sum
from django.db.models.functions import Length

from ...models import VectorDocument
from ...models.vectors import vector_length

MAX_INDEXES = 200


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
