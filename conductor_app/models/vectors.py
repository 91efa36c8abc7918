"""Documents with embeddings, for the search by similarity."""

from django.db import models
from django.db.models.functions import Length

from .fields import DocumentField, MomentField

L2, COSINE, INNER_PRODUCT = METRICS = ("l2", "cosine", "inner_product")
"""The metrics of distance. A smaller value is nearer; the inner product is negative for that reason."""


class VectorDocument(models.Model):
    """A text, or a part of one, with its embedding.

    `database`: the name of the integration. `embedding`: little-endian 32-bit floats. `norm`: its Euclidean norm.
    `parent_id`: the document of which this one is a part.
    """

    database = models.CharField(max_length=255)
    index = models.CharField(max_length=255)
    namespace = models.CharField(max_length=255)
    document_id = models.CharField(max_length=255)
    parent_id = models.CharField(max_length=255, default="", blank=True)
    text = models.TextField(default="", blank=True)
    metadata = DocumentField(default=dict)
    embedding = models.BinaryField()
    norm = models.FloatField()
    updated_at = MomentField()

    class Meta:
        default_permissions = ("view", "delete")
        constraints = [
            models.UniqueConstraint(
                name="one_vector_per_document", fields=["database", "index", "namespace", "document_id"]
            )
        ]

    def __str__(self) -> str:
        return f"{self.database}/{self.index}/{self.namespace}/{self.document_id}"


class VectorIndexVersion(models.Model):
    """A random text that each write to an index replaces, so that a process knows whether what it has read is current.

    A number could be the same again after a restored backup.
    """

    database = models.CharField(max_length=255)
    index = models.CharField(max_length=255)
    version = models.CharField(max_length=32)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(name="one_version_per_index", fields=["database", "index"])]

    def __str__(self) -> str:
        return f"{self.database}/{self.index} version {self.version}"


def vector_length() -> Length:
    """Return the expression for the bytes of an embedding."""
    return Length("embedding", output_field=models.IntegerField())
