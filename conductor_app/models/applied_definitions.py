"""What was applied from folders of definitions, such as Git repositories."""

from django.db import models

from .fields import DocumentField, MomentField

MAX_LABEL_LENGTH, MAX_COMMIT_LENGTH = 120, 64
NEWEST = 0
"""The stated version of a document without one: it follows the newest version."""


class AppliedDefinition(models.Model):
    """A definition as a source applied it last. It belongs to that source.

    `label`: the name of the source. `stated_version`: that of its document, or NEWEST. `version`: the one that was
    saved, 0 if the kind has none. `versions`: all versions that the source has saved. `document`: as it was saved.
    """

    label = models.CharField(max_length=MAX_LABEL_LENGTH)
    kind = models.CharField(max_length=32)
    name = models.CharField(max_length=255)
    stated_version = models.IntegerField(default=NEWEST)
    version = models.IntegerField(default=0)
    versions = DocumentField(default=list)
    document = DocumentField(default=dict)
    commit = models.CharField(max_length=MAX_COMMIT_LENGTH, default="", blank=True)
    applied_at = MomentField()
    applied_by = models.CharField(max_length=255)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="one_source_per_definition_and_version", fields=["kind", "name", "stated_version"]
            )
        ]
        indexes = [models.Index(name="applied_definition_of_label", fields=["label", "kind", "name"])]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.label}"
