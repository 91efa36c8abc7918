"""What payloads must look like: schemas under a name and a version, as their authors wrote them."""

from django.db import models

from .fields import Authored, DocumentField


class SchemaDefinition(Authored):
    """A schema that definitions refer to; plans hold a copy of the one that was there when they were made."""

    name = models.CharField(max_length=255)
    version = models.IntegerField(default=1)
    document = DocumentField(default=dict)

    class Meta:
        ordering = ["name", "-version"]
        # Who may what is said by permissions under the name `schema`, which roles hold.
        default_permissions = ()
        constraints = [models.UniqueConstraint(name="one_schema_per_name_and_version", fields=["name", "version"])]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"
