"""Schemas of payloads by name and version, as their authors wrote them."""

from django.db import models

from .fields import Authored, DocumentField


class SchemaDefinition(Authored):
    """A schema that definitions refer to. Resolved definitions contain a copy."""

    name = models.CharField(max_length=255)
    version = models.IntegerField(default=1)
    document = DocumentField(default=dict)

    class Meta:
        ordering = ["name", "-version"]
        # Permissions use the name `schema`, which roles contain (see `Grant`).
        default_permissions = ()
        constraints = [models.UniqueConstraint(name="one_schema_per_name_and_version", fields=["name", "version"])]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"
