"""Form templates: the layout of the form of a HUMAN task, stored by name and version."""

from django.db import models

from .fields import Authored, DocumentField


class FormTemplate(Authored):
    """One version of a form template; `document` holds `jsonSchema`, `templateUI`, `ownerApp` and `tags`."""

    name = models.CharField(max_length=255)
    version = models.IntegerField(default=1)
    document = DocumentField(default=dict)

    class Meta:
        ordering = ["name", "-version"]
        constraints = [
            models.UniqueConstraint(name="one_form_template_per_name_and_version", fields=["name", "version"])
        ]

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"
