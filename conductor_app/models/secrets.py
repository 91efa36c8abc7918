"""Secrets, stored encrypted, and variables that definitions may read, both by name."""

from django.db import models

from .fields import Authored, DocumentField


class NamedValue(Authored):
    """Common columns: name, tags and authorship."""

    name = models.CharField(max_length=255, primary_key=True)
    tags = DocumentField(default=list)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Secret(NamedValue):
    """A value that only workers receive. `sealed`: the encrypted value, with the name of its encryption key."""

    sealed = models.TextField()

    class Meta(NamedValue.Meta):
        permissions = [("execute_secret", "Can use secrets in definitions")]


class Variable(NamedValue):
    """A value that any definition may read as `${workflow.env.NAME}`."""

    value = models.TextField(default="", blank=True)

    class Meta(NamedValue.Meta):
        permissions = [("execute_variable", "Can use variables in definitions")]
