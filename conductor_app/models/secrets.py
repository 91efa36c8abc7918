"""Secrets, kept sealed, and variables that definitions may read: both by name."""

from django.db import models

from .fields import Authored, DocumentField


class NamedValue(Authored):
    """What both have: a name, tags, and who wrote it when."""

    name = models.CharField(max_length=255, primary_key=True)
    tags = DocumentField(default=list)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Secret(NamedValue):
    """A value that only workers are told. `sealed`: encrypted, with the name of its key in front."""

    sealed = models.TextField()


class Variable(NamedValue):
    """A value that any definition may read as `${workflow.env.NAME}`."""

    value = models.TextField(default="", blank=True)
